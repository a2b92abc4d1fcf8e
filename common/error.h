/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Errors: one number and one sentence.
 *
 * A function that can fail returns 0 or a negative errno and, when it takes a `struct error *`,
 * leaves there one sentence that names what was tried on what. The sentence is made once, where
 * both are known; callers may put context in front of it with error_wrap(). Library code never
 * prints, logs or exits: entry points do, once.
 *
 * A positive return value is a condition that the function's header documents.
 */
#pragma once

#define ERROR_TEXT_MAX 480

struct error {
	char text[ERROR_TEXT_MAX]; /* no trailing newline or full stop */
};

#define ERROR_NULL ((struct error){ .text = "" })

/* Sets the sentence (cut at ERROR_TEXT_MAX - 1 bytes) and returns @r, so that a caller can write
 * `return error_set(e, -EINVAL, "...")`. @r is a negative errno. @e may be NULL. */
int error_set(struct error *e, int r, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* As error_set(), with ": " and the errno's description appended. */
int error_errno(struct error *e, int r, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the sentence; returns @r. */
int error_wrap(struct error *e, int r, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
