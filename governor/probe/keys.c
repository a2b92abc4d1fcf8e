/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys and keyrings, keyrings(7). */
#include <linux/keyctl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "governor/probe/probe.h"

/* Both are made by who looks for one of them, or asks for a key, and they outlive him: his uid
 * would own keys until the next boot. By number, since to look for the second one by its name would
 * make the first one again. */
static void invalidate_user_keyrings(void)
{
	long user = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0);
	long session = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_SESSION_KEYRING, 0);

	if (user >= 0)
		syscall(SYS_keyctl, KEYCTL_INVALIDATE, user);
	if (session >= 0)
		syscall(SYS_keyctl, KEYCTL_INVALIDATE, session);
}

/* The key that verify has made, by its serial number, and the keyrings of the user and the session.
 */
static void try_keyring(const struct probe *p, char *aim, struct seen *s)
{
	char data[64];

	(void)p;
	for (char *word; (word = next_word(&aim));)
		seen_attempt(s, word,
			     syscall(SYS_keyctl, KEYCTL_READ, strtol(word, NULL, 10), data,
				     sizeof(data)));
	seen_attempt(s, "user keyring",
		     syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1));
	seen_attempt(s, "session keyring",
		     syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0));
	invalidate_user_keyrings();
}

static void try_keys(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	seen_attempt(s, "add_key",
		     syscall(SYS_add_key, "user", aim, "x", 1, KEY_SPEC_PROCESS_KEYRING));
	seen_attempt(s, "keyctl", syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL));
}

/* The kernel would ask /sbin/request-key, which is root and sends. */
static void try_request_key(const struct probe *p, char *aim, struct seen *s)
{
	(void)p;
	seen_attempt(s, "dns_resolver",
		     syscall(SYS_request_key, "dns_resolver", aim, "", KEY_SPEC_PROCESS_KEYRING));
	invalidate_user_keyrings();
}

const struct probe key_probes[] = {
	{ "ipc.keyring", try_keyring, { 0 }, NULL, false },
	{ "syscalls.keys", try_keys, { 0 }, "harpe-gov-probe", false },
	{ "syscalls.request-key", try_request_key, { 0 }, "verify.invalid", false },
	{ 0 },
};
