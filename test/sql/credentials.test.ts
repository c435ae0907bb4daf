import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { lockAccount, recordLogin } from '../../sql/accounts/accounts.ts'
import { lockFactors, revokeCredentials } from '../../sql/accounts/credentials.ts'
import { insertPasskey, recordPasskeyLogin, recordPasskeyUse } from '../../sql/accounts/passkeys.ts'
import { confirmTotp, insertTotp } from '../../sql/accounts/totp.ts'
import type { Queries } from '../../sql/db.ts'
import { decideLogin } from '../../sql/limits/limits.ts'
import { SEALED_TEXT } from '../keys.ts'
import { until } from '../until.ts'
import { newAddress, sharedDatabase } from './shared-database.ts'

/**
 * Tests the statement that revokes an account's credentials: everything that signs in, acts for the account or receives
 * its notifications.
 */

const { db, query } = await sharedDatabase()

test('covers every table that references accounts, except those without credentials', async () => {
  // Tables that hold data, actions, settings or memberships, which the owner can see and delete.
  const OTHERS = [
    ...[
      'account_export',
      'account_quota',
      'ai_budget',
      'ai_conversation',
      'ai_usage',
      'blog_post',
      'blog_revision',
      'comms_send',
      'document',
      'job',
    ],
    ...[
      'llm_current',
      'organization',
      'organization_invite',
      'organization_member',
      'payment_customer',
      'queue_control',
    ],
    ...[
      'rag_collection',
      'schedule',
      'voice_preview',
      'voice_settings',
      'voice_transcription',
      'worker_queue',
    ],
  ]
  const keys = await query(
    `select conrelid::regclass::text as name from pg_constraint where contype = 'f' and confrelid = 'account'::regclass`,
  )
  const { sql } = revokeCredentials(1)
  const unnamed = keys.map(({ name }) => name as string).filter((name) => !sql.includes(` ${name} `))
  assert.deepEqual([...new Set(unnamed)].sort(), OTHERS.sort())
})

/** Adds an account with both second factors. Returns the statements that begin and end each of its sign-ins. */
async function addPerson() {
  const email = newAddress()
  const [row] = await query(`insert into account (email, password_hash) values ($1, 'hash') returning id`, [
    email,
  ])
  const id = row!.id as number
  const [totpId, key] = [randomUUID(), randomUUID()]
  await db.run(insertTotp(totpId, id, SEALED_TEXT))
  await db.run(confirmTotp(totpId, 1, []))
  const bytes = { credentialId: randomBytes(16), publicKey: randomBytes(16) }
  const more = { counter: 0, transports: [], name: 'one', isSynced: false }
  await db.run(insertPasskey({ id: key, accountId: id, ...bytes, ...more }))
  const subject = createHash('sha256').update(email).digest()
  const given = { totpId, step: 2, recovery: null }
  return {
    id,
    email,
    signIns: {
      code: {
        begin: (tx: Queries) => tx.run(decideLogin(subject, true, 5, 900, given)),
        end: (tx: Queries) => tx.maybeOne(recordLogin(id, { passwordHash: 'hash', totpId })),
      },
      passkey: {
        begin: (tx: Queries) => tx.run(recordPasskeyUse(key, 1, false)),
        end: (tx: Queries) => tx.maybeOne(recordPasskeyLogin(id)),
      },
    },
  }
}

describe('waits for a sign-in in progress, without a deadlock', () => {
  for (const kind of ['code', 'passkey'] as const)
    test(`with a ${kind}`, async () => {
      const { id, email, signIns } = await addPerson()
      let attempts = 0
      let ending: Promise<void> | undefined
      const signedIn = await db.transaction(async (tx) => {
        attempts++
        await signIns[kind].begin(tx)
        ending = db.transaction(async (other) => {
          attempts++
          await other.run(lockFactors(email))
          await other.run(lockAccount(id))
          await other.run(revokeCredentials(id))
        })
        await until('the revocation waits', async () => {
          const waiting = await query(`select from pg_stat_activity where datname = current_database()
            and wait_event_type = 'Lock'`)
          return waiting.length === 1
        })
        return signIns[kind].end(tx)
      })
      await ending
      assert.notEqual(signedIn, null)
      assert.equal(attempts, 2, 'neither has begun again')
      const left = await query(
        `select id from passkey where account_id = $1
        union all select id from account_totp where account_id = $1`,
        [id],
      )
      assert.deepEqual(left, [])
    })
})
