/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * proc_files.h - count what /proc lists: descriptors, threads, mappings, the
 * entries of an epoll set; for tests of any framework
 *
 * A file or folder that can not be read ends the process by abort().
 */
#ifndef PROC_FILES_H
#define PROC_FILES_H

#include <stddef.h>

/* The number of names in a folder that contain a text, without "." and "..".
 * The descriptor that reads the folder counts as open in /proc/self/fd. */
int proc_names(const char *folder, const char *text);
/* The number of lines of a file that contain a text. */
int proc_lines(const char *path, const char *text);

/* The number of descriptors that this process has open, always with the one
 * that reads them. */
int proc_self_fds(void);
/* The number of mappings of this process in whose line the text is: the name of
 * a file, or "" for all. */
int proc_self_mappings(const char *text);
/* The number of descriptors in an epoll set of this process. */
int proc_self_watched(int epfd);
/* The bytes of this process's address space, with or without memory. */
size_t proc_self_space(void);

#endif /* PROC_FILES_H */
