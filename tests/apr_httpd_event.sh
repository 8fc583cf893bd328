#!/bin/sh
# apr_httpd.sh under the event MPM.
exec "${srcdir:-.}/tests/apr_httpd.sh" event
