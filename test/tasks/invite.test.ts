import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { fail } from '../../sql/errors.ts'
import { markOrganizationDeleted } from '../../sql/orgs/orgs.ts'
import { sendInviteMail } from '../../tasks/accounts/invite.task.ts'
import { inviteTokenOf } from '../../tasks/accounts/tokens.ts'
import type { EmailMessage } from '../../tasks/comms/ports.ts'
import { createTestDatabase } from '../database.ts'
import { TEST_KEYS } from '../keys.ts'
import { createMailContext } from './mail-context.ts'

const { db, query } = await createTestDatabase()
let count = 0

/**
 * Returns a job that mails an invite and can run several times. The test reads its mails and sets its provider's
 * failures.
 */
function createJob(settings: Record<string, string> = {}) {
  const sent: EmailMessage[] = []
  const state = { failure: null as Error | null }
  const id = randomUUID() as string
  const context = createMailContext({ db }, id, {
    keys: TEST_KEYS,
    settings: { PUBLIC_BASE_URL: 'https://service.example', ...settings },
    deliver: async (message) => {
      sent.push(message)
      if (state.failure !== null) throw state.failure
    },
  })
  return { id, sent, state, run: (invite_id: number) => sendInviteMail.run(context, { invite_id }) }
}

async function addInvite(fields: { status?: string; by?: string | null; seconds?: number } = {}) {
  const n = ++count
  const [org] = await query(`insert into organization (name, slug) values ('Acme & Sons', $1) returning id`, [
    `s${n}`,
  ])
  const [by] = await query(
    `insert into account (email, password_hash, full_name) values ($1, 'x', $2) returning id`,
    [`by${n}@example.com`, fields.by ?? null],
  )
  const email = `guest${n}@example.com`
  const { status = 'pending', seconds = 60 } = fields
  const [row] = await query(
    `insert into organization_invite (organization_id, email, role, status, invited_by, expires_at, accepted_at)
     values ($1, $2, 'admin', $3, $4, now() + make_interval(secs => $5), case when $3 = 'accepted' then now() end) returning id`,
    [org!.id, email, status, by!.id, seconds],
  )
  return { id: row!.id as number, email, org: org!.id as number, by: by!.id as number }
}

describe(sendInviteMail.name, () => {
  test('mails instructions with the token that the edge accepts', async () => {
    const { id, email } = await addInvite({ by: 'Ann' })
    const one = createJob({ INVITE_TOKEN_DAYS: '5' })
    assert.deepEqual(await one.run(id), {})
    const [mail] = one.sent
    assert.deepEqual([mail!.id, mail!.to, one.sent.length], [one.id, [email], 1])
    assert.equal(mail!.subject, 'You are invited to Acme & Sons')
    const token = inviteTokenOf(TEST_KEYS, id, email)
    for (const part of [
      'Ann invites you to join Acme & Sons as admin',
      `https://service.example/accept-invite#token=${token}`,
      `the token is: ${token}`,
      'valid for 5 days',
    ])
      assert.ok(mail!.text!.includes(part), part)
    assert.ok(mail!.html!.includes('Acme &#38; Sons'))
  })

  test('each job sends one mail, and a repeated invite has the same token', async () => {
    const { id } = await addInvite()
    const [first, again] = [createJob(), createJob()]
    await first.run(id)
    await again.run(id)
    assert.deepEqual({ ...again.sent[0]!, id: 0, dateMs: 0 }, { ...first.sent[0]!, id: 0, dateMs: 0 })
    const sends = await query('select status from comms_send where id = any($1)', [[first.id, again.id]])
    assert.deepEqual(sends, [{ status: 'sent' }, { status: 'sent' }])
  })

  test('the mail names the sender by address if they have no name, and not at all if they are deleted', async () => {
    const [unnamed, gone] = [await addInvite(), await addInvite({ by: 'Ann' })]
    await query('delete from account where id = $1', [gone.by])
    const [one, other] = [createJob(), createJob()]
    await one.run(unnamed.id)
    await other.run(gone.id)
    assert.match(one.sent[0]!.text!, /by\d+ @ example\. com invites you to join/)
    assert.match(other.sent[0]!.text!, /You are invited to join/)
  })

  test('the mail to an account that was added directly says so, without a link to accept', async () => {
    const { id, email } = await addInvite({ status: 'accepted', by: 'Ann' })
    const one = createJob()
    await one.run(id)
    const [mail] = one.sent
    assert.equal(mail!.subject, 'You are a member of Acme & Sons')
    assert.ok(mail!.text!.includes(`Your account ${email} was added to Acme & Sons as admin by Ann`))
    assert.ok(!mail!.text!.includes('token'))
  })

  test('no mail is sent for an expired or deleted invite', async () => {
    const one = createJob()
    for (const status of ['revoked', 'expired']) await one.run((await addInvite({ status })).id)
    await one.run((await addInvite({ seconds: -1 })).id)
    const { id, org } = await addInvite()
    await db.one(markOrganizationDeleted(org))
    await one.run(id)
    assert.deepEqual(one.sent, [])
  })

  test('a failing provider fails the job, and the next attempt sends the same mail', async () => {
    const { id } = await addInvite()
    const one = createJob()
    one.state.failure = fail('email.failed', { reason: 'x' })
    await assert.rejects(one.run(id), { code: 'email.failed' })
    one.state.failure = null
    await one.run(id)
    await one.run(id)
    assert.equal(one.sent.length, 2)
    assert.deepEqual(one.sent[1], one.sent[0])
  })
})
