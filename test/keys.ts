import type { MailedTokenKind } from '../sql/accounts/accounts.ts'
import type { AddressSide } from '../sql/accounts/email-changes.ts'
import { type Database, noRows, sql } from '../sql/db.ts'
import { listStoredKeys } from '../sql/system/sealed.ts'
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

const STORED_ID = '01980000-0000-7000-8000-000000000001'

/** Stores the key of the test's process in a database, so that processes which the test starts share it. */
export async function shareStoredKey(db: Database): Promise<void> {
  if ((await db.any(listStoredKeys())).length > 0) return
  const secret = TEST_KEYS.seal(`stored_key:${STORED_ID}`, KEY_MATERIAL.stored[0]!)
  await db.run(
    sql.type(
      noRows,
    )`insert into stored_key (id, secret) values (${STORED_ID}::uuid, ${secret}) on conflict do nothing`,
  )
}
