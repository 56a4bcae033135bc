# SPDX-License-Identifier: BSD-2-Clause

# UNM_ARG_ENABLE(NAME, HELP): --enable-NAME, off by default; sets enable_NAME
AC_DEFUN([UNM_ARG_ENABLE], [
AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [$2])], [],
	      [AS_VAR_SET(AS_TR_SH([enable_$1]), [no])])
])

# UNM_ADD_CFLAG(FLAG, [IF-NOT]): append FLAG to UNM_CFLAGS where it is known.
# -Werror, because clang only warns of a flag it does not know.
AC_DEFUN([UNM_ADD_CFLAG], [
AC_MSG_CHECKING([whether $CC knows $1])
unm_saved_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS -Werror $1"
AC_COMPILE_IFELSE([AC_LANG_SOURCE([[int unm_x;]])],
	[AC_MSG_RESULT([yes])
	 UNM_CFLAGS="$UNM_CFLAGS${UNM_CFLAGS:+ }$1"],
	[AC_MSG_RESULT([no])
	 $2])
CFLAGS=$unm_saved_CFLAGS
])

# UNM_CHECK_LINK(FLAGS, IF-YES, IF-NO): whether a file that reads memory, divides
# and starts nothing links with FLAGS
AC_DEFUN([UNM_CHECK_LINK], [
AC_MSG_CHECKING([whether $CC links with $1])
unm_saved_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS $1"
AC_LINK_IFELSE([AC_LANG_SOURCE([[
int unm_div(const int *p, int i) { return p[i] / p[0]; }
int main(int argc, char **argv) { (void)argv; return unm_div(&argc, 0) - 1; }
]])],
	[unm_links=yes], [unm_links=no])
CFLAGS=$unm_saved_CFLAGS
AC_MSG_RESULT([$unm_links])
AS_IF([test $unm_links = yes], [:
	$2], [:
	$3])
])
