/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check_dso.c - load a provider as libfabric does and check its entry.
 *
 *	check_dso FILE
 *
 * FILE is loaded with RTLD_NOW, so that an unresolved symbol is an error here;
 * libfabric would silently leave the provider out. check-dso.sh runs this.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

static int check_entry(struct fi_provider *prov)
{
	if (prov == NULL || prov->name == NULL ||
	    strcmp(prov->name, "unimem") != 0) {
		fprintf(stderr, "fi_prov_ini: not the provider \"unimem\"\n");
		return 1;
	}
	if (prov->fi_version != fi_version()) {
		fprintf(stderr, "fi_version is %u.%u, libfabric's is %u.%u\n",
			FI_MAJOR(prov->fi_version), FI_MINOR(prov->fi_version),
			FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
		return 1;
	}
	if (prov->getinfo == NULL || prov->fabric == NULL ||
	    prov->cleanup == NULL) {
		fprintf(stderr, "fi_prov_ini: an entry is missing\n");
		return 1;
	}
	prov->cleanup();
	return 0;
}

int main(int argc, char **argv)
{
	struct fi_provider *(*entry)(void);
	void *dso;
	int ret;

	if (argc != 2) {
		fprintf(stderr, "usage: check_dso FILE\n");
		return 99;
	}
	dso = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (dso == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&entry = dlsym(dso, "fi_prov_ini");
	if (entry == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	ret = check_entry(entry());
	if (dlclose(dso) != 0) {
		fprintf(stderr, "%s\n", dlerror());
		ret = 1;
	}
	return ret;
}
