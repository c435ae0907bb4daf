import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import {
  findMailedToken,
  insertAccount,
  markAddressVerified,
  redeemMailedToken,
} from '../../sql/accounts/accounts.ts'
import { deactivateAccount, deleteAccount } from '../../sql/accounts/deletions.ts'
import { fail } from '../../sql/errors.ts'
import { sendForcedDeletionMail } from '../../tasks/accounts/forced-deletion-mail.task.ts'
import { NOTICES, sendNoticeMail } from '../../tasks/accounts/notice.task.ts'
import { sendPasswordResetMail } from '../../tasks/accounts/password-reset.task.ts'
import { digestOf } from '../../tasks/accounts/tokens.ts'
import { sendVerification } from '../../tasks/accounts/verification.task.ts'
import type { EmailMessage, ProviderRequest } from '../../tasks/comms/ports.ts'
import { SecretKeys } from '../../tasks/platform/keys.ts'
import { createTestDatabase } from '../database.ts'
import { KEY_MATERIAL, mailedTokenOf, TEST_KEYS } from '../keys.ts'
import { createMailContext } from './mail-context.ts'

const { db, query } = await createTestDatabase()

/**
 * Returns a job of a mail task that can run several times. The test reads its mails and sets its provider's failures.
 */
function createJob(settings: Record<string, string> = {}, keys = TEST_KEYS, id: string = randomUUID()) {
  const sent: (EmailMessage & Pick<ProviderRequest, 'isUrgent'>)[] = []
  const warnings: string[] = []
  const state = { failure: null as Error | null, id }
  const context = createMailContext({ db }, state.id, {
    keys,
    settings: { PUBLIC_BASE_URL: 'https://service.example', ...settings },
    deliver: async (message, { isUrgent }) => {
      sent.push({ ...message, ...(isUrgent === undefined ? {} : { isUrgent }) })
      if (state.failure !== null) throw state.failure
    },
    warn: (_, message) => warnings.push(message),
  })
  return {
    id: state.id,
    sent,
    warnings,
    state,
    reset: (email: string) => sendPasswordResetMail.run(context, { email }),
    verify: (account_id: number) => sendVerification.run(context, { account_id }),
    reportForced: (admin_id: number, subscriptions: string[]) =>
      sendForcedDeletionMail.run(context, { admin_id, account_id: 77, subscriptions }),
    notify: (account_id: number, what: (typeof NOTICES)[number], name?: string) =>
      sendNoticeMail.run(context, { account_id, what, ...(name === undefined ? {} : { name }) }),
  }
}

async function addAccount(fields: { isActive?: boolean } = {}): Promise<{ id: number; email: string }> {
  const email = `${randomUUID()}@example.com`
  const made = { email, passwordHash: 'x', fullName: 'Ann', role: 'user', isActive: true, ...fields } as const
  return { id: (await db.one(insertAccount(made))).id, email }
}
const countTokens = async (): Promise<number> =>
  (await query('select count(*)::int as n from account_token'))[0]!.n as number
const findToken = ({ text }: EmailMessage): string => /token is: (\S+)/.exec(text!)![1]!

describe(sendForcedDeletionMail.name, () => {
  test('names the account and its subscriptions, and is not sent to an admin who is gone', async () => {
    const [admin, gone] = [await addAccount(), await addAccount()]
    const [one, other] = [createJob(), createJob()]
    await one.reportForced(admin.id, ['sub_1', 'sub_2'])
    await db.one(deleteAccount(gone.id))
    await other.reportForced(gone.id, [])
    assert.deepEqual([one.sent.map(({ to }) => to), other.sent], [[[admin.email]], []])
    assert.equal(one.sent[0]!.isUrgent, true, 'a person waits for it')
    assert.match(
      one.sent[0]!.text!,
      /account 77 could not be cancelled at the payment provider \(sub_1, sub_2\)/,
    )
  })
})

for (const kind of ['reset', 'verify'] as const) {
  const task = kind === 'reset' ? sendPasswordResetMail : sendVerification
  const run = (one: ReturnType<typeof createJob>, owner: { id: number; email: string }) =>
    kind === 'reset' ? one.reset(owner.email) : one.verify(owner.id)

  describe(task.name, () => {
    test('mails a working token, of which nothing usable is stored', async () => {
      const owner = await addAccount()
      const one = createJob()
      assert.deepEqual(await run(one, owner), {})
      const [mail] = one.sent
      assert.deepEqual([mail!.id, mail!.to, one.sent.length], [one.id, [owner.email], 1])
      const token = findToken(mail!)
      assert.match(token, /^[\w-]{43}$/)
      assert.equal(token, mailedTokenOf(kind, one.id))
      const rows = JSON.stringify(
        await query('select * from account_token where account_id = $1', [owner.id]),
      )
      assert.ok(!rows.includes(token))
      assert.deepEqual(await db.maybeOne(redeemMailedToken(kind, digestOf(token))), {
        account_id: owner.id,
        email: owner.email,
      })
    })

    test('limits an address to ten mails an hour, without affecting other addresses', async () => {
      const [owner, other] = [await addAccount(), await addAccount()]
      const jobs = Array.from({ length: 12 }, () => createJob())
      for (const one of jobs) assert.deepEqual(await run(one, owner), {})
      assert.deepEqual(
        jobs.map(({ sent }) => sent.length),
        [...Array(10).fill(1), 0, 0],
      )
      assert.deepEqual(jobs.at(-1)!.warnings, [
        'Email dropped: the address received 10 such emails within an hour',
      ])
      const one = createJob()
      await run(one, other)
      assert.equal(one.sent.length, 1)
      await query(
        `update request_limit set hits = array(select hit - interval '1 hour' from unnest(hits) hit)`,
      )
      const later = createJob()
      await run(later, owner)
      assert.equal(later.sent.length, 1)
    })

    test('mails the same token after a retry by a worker with another current key', async () => {
      const owner = await addAccount()
      const one = createJob()
      one.state.failure = fail('email.failed', { reason: 'x' })
      await assert.rejects(run(one, owner), { code: 'email.failed' })
      const create = (...secrets: string[]) => new SecretKeys({ ...KEY_MATERIAL, secrets })
      const newKey = 'n'.repeat(32)
      await assert.rejects(run(createJob({}, create(newKey), one.id), owner), /under an unknown SECRET_KEY/)
      const rotated = createJob({}, create(newKey, ...KEY_MATERIAL.secrets), one.id)
      await run(rotated, owner)
      assert.deepEqual(rotated.sent.map(findToken), one.sent.map(findToken))
    })

    test('mails the same token in the same message after a retry, and nothing once it is sent', async () => {
      const owner = await addAccount()
      const one = createJob()
      one.state.failure = fail('email.failed', { reason: 'x' })
      await assert.rejects(run(one, owner), { code: 'email.failed', retry: 'free' })
      one.state.failure = null
      const before = await countTokens()
      await run(one, owner)
      await run(one, owner)
      assert.equal(one.sent.length, 2)
      assert.deepEqual(one.sent[0], one.sent[1])
      const [row] = await query('select * from comms_send where id = $1', [one.id])
      assert.deepEqual(
        [row!.status, row!.requests, row!.recipients, row!.owner_id],
        ['sent', 2, [owner.email], null],
      )
      assert.ok(!JSON.stringify(row).includes(findToken(one.sent[0]!)))
      assert.equal(await countTokens(), before)
      assert.notEqual(await db.maybeOne(findMailedToken(kind, digestOf(findToken(one.sent[0]!)))), null)
    })

    test('is rejected before sending if mail to the address is suppressed', async () => {
      const owner = await addAccount()
      const one = createJob()
      await query(`insert into comms_suppression (address, reason, send_id) values ($1, 'complained', $2)`, [
        owner.email,
        randomUUID(),
      ])
      await assert.rejects(run(one, owner), { code: 'email.suppressed', retryable: false })
      const [row] = await query('select status, error_code, purpose from comms_send where id = $1', [one.id])
      assert.deepEqual(row, { status: 'failed', error_code: 'email.suppressed', purpose: 'account' })
      assert.deepEqual(one.sent, [])
    })

    test('is sent to an address that has unsubscribed, or has refused broadcasts', async () => {
      const owner = await addAccount()
      const one = createJob()
      await query(
        `insert into comms_suppression (address, stream, reason, send_id) values
           ($1, 'transactional', 'unsubscribed', $2), ($1, 'broadcast', 'complained', $2)`,
        [owner.email, randomUUID()],
      )
      await run(one, owner)
      assert.equal(one.sent.length, 1)
    })

    test('mails another token from another job, and both work', async () => {
      const owner = await addAccount()
      const [one, other] = [createJob(), createJob()]
      await run(one, owner)
      await run(other, owner)
      const [first, second] = [findToken(one.sent[0]!), findToken(other.sent[0]!)]
      assert.notEqual(first, second)
      for (const token of [first, second])
        assert.notEqual(await db.maybeOne(findMailedToken(kind, digestOf(token))), null)
    })

    test('neither mails nor revives a token that was used meanwhile', async () => {
      const owner = await addAccount()
      const one = createJob()
      await run(one, owner)
      const digest = digestOf(findToken(one.sent[0]!))
      await db.maybeOne(redeemMailedToken(kind, digest))
      await run(one, owner)
      assert.equal(one.sent.length, 1)
      assert.equal(await db.maybeOne(redeemMailedToken(kind, digest)), null)
    })

    test("counts the token's lifetime from the attempt that mailed it", async () => {
      const owner = await addAccount()
      const one = createJob({ RESET_TOKEN_MINUTES: '30', VERIFY_TOKEN_HOURS: '2' })
      one.state.failure = fail('email.failed', { reason: 'x' })
      await assert.rejects(run(one, owner))
      one.state.failure = null
      await query(`update account_token set expires_at = now() - interval '1 h' where id = $1`, [one.id])
      await run(one, owner)
      const [row] = await query(
        'select round(extract(epoch from expires_at - now()))::int as left from account_token where id = $1',
        [one.id],
      )
      assert.ok(Math.abs((row!.left as number) - (kind === 'reset' ? 1800 : 7200)) < 60)
      assert.match(one.sent[1]!.text!, kind === 'reset' ? /30 minutes/ : /2 hours/)
    })

    test('does nothing for an unknown address, and does not reveal that', async () => {
      const before = await countTokens()
      const one = createJob()
      assert.deepEqual(await run(one, { id: 2_000_000_000, email: 'nobody@example.com' }), {})
      const owner = await addAccount()
      if (kind === 'reset') await db.maybeOne(deactivateAccount(owner.id))
      else await db.run(markAddressVerified(owner.id))
      assert.deepEqual(await run(one, owner), {})
      const gone = await addAccount()
      await db.one(deleteAccount(gone.id))
      assert.deepEqual(await run(one, gone), {})
      assert.deepEqual([one.sent.length, await countTokens()], [0, before])
    })

    test('stores an address or an id in its job, but never a token', () => {
      const payload = kind === 'reset' ? { email: 'a@example.com' } : { account_id: 1 }
      assert.deepEqual(task.payload.parse(payload), payload)
      assert.equal(task.payload.safeParse({ ...payload, token: 'x' }).success, false)
      assert.deepEqual([task.queue, task.pool, task.actor], ['accounts', 'io', undefined])
    })
  })
}

describe('a notice', () => {
  test('names the change and what to do about it', async () => {
    const owner = await addAccount()
    for (const what of NOTICES) {
      const one = createJob()
      await one.notify(owner.id, what, what === 'totp_disabled' ? undefined : 'the <b>phone\n of')
      const [{ to, subject, text, html }] = one.sent as [EmailMessage]
      assert.deepEqual(to, [owner.email])
      assert.match(`${subject} ${text}`, /API key|passkey|One-time codes|sign in/)
      assert.match(text!, /If it was not you, set a new password/)
      assert.ok(!html!.includes('<b>'), html)
      assert.equal(text!.includes('the <b>phone of.'), what !== 'totp_disabled')
    }
  })

  test('is not sent to a deleted account, nor more than ten times an hour', async () => {
    const owner = await addAccount()
    const all = []
    for (let i = 0; i < 12; i++) {
      const one = createJob()
      await one.notify(owner.id, 'key_created', 'k')
      all.push(one)
    }
    assert.equal(all.filter(({ sent }) => sent.length === 1).length, 10)
    await db.one(deleteAccount(owner.id))
    const late = createJob()
    await late.notify(owner.id, 'key_created', 'k')
    assert.deepEqual(late.sent, [])
  })
})
