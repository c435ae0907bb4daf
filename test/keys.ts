import type { MailedTokenKind } from '../sql/accounts/accounts.ts'
import type { AddressSide } from '../sql/accounts/email-changes.ts'
import { emailChangeTokensOf, mailedTokensOf } from '../tasks/accounts/tokens.ts'
import { type KeyMaterial, SecretKeys } from '../tasks/platform/keys.ts'
import { createWebhookSecret, webhookSealUseOf } from '../tasks/webhooks/signature.ts'

/** The keys of edges and workers in the test's process. Whole services store a key of their own. */

export const KEY_MATERIAL: KeyMaterial = {
  secrets: ['a secret for tests, long enough to be one'],
  stored: ['a stored key for tests'],
}
export const TEST_KEYS = new SecretKeys(KEY_MATERIAL)

/** Keys that made nothing of this deployment. */
export const FOREIGN_KEYS = new SecretKeys({ secrets: ['x'.repeat(32)], stored: ['another stored key'] })

/** A sealed text for rows whose secret no test opens. */
export const SEALED_TEXT = 'aaaaaaaa.AAAA'

export const mailedTokenOf = (kind: MailedTokenKind, id: string): string =>
  mailedTokensOf(TEST_KEYS, kind, id)[0]!

export const emailChangeTokenOf = (side: AddressSide, id: string): string =>
  emailChangeTokensOf(TEST_KEYS, side, id)[0]!

export const sealWebhookSecret = (accountId: number | null): string =>
  TEST_KEYS.seal(webhookSealUseOf(accountId), createWebhookSecret())
