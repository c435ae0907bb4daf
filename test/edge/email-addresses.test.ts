import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import bcrypt from 'bcryptjs'
import { createCast, logIn } from './accounts-help.ts'
import { PASSWORD, startEdgeAndDatabase } from './harness.ts'
import { createMailbox } from './mailbox.ts'

/** One address has several forms: its domain in Unicode or in ASCII, in any case. */

const { api, url, query, db } = await startEdgeAndDatabase()
const readMails = createMailbox({ url, query, db })
const { admin, user } = await createCast(api)

let count = 0
function createAddresses() {
  const name = `ann${++count}`
  const ascii = `${name}@xn--bcher-kva.example`
  return { ascii, forms: [`${name}@bücher.example`, ascii, ` ${name.toUpperCase()}@BÜCHER.Example `] }
}
const register = (email: string) => api.post('/api/v1/auth/register', { json: { email, password: PASSWORD } })

describe('an address with an internationalized domain', () => {
  test('has one account in all its forms', async () => {
    const { ascii, forms } = createAddresses()
    const registered = await register(forms[0]!)
    assert.deepEqual([registered.status, registered.json.email], [200, ascii])
    for (const form of forms) {
      assert.equal((await register(form)).json.code, 'account.email_taken', form)
      assert.equal((await logIn(api, form)).status, 200, form)
      const { json } = await api.get(`/api/v1/auth/users?search=${encodeURIComponent(form)}`, admin)
      assert.deepEqual([json.length, json[0].email], [1, ascii])
    }
    assert.equal((await api.get('/api/v1/auth/users?search=b%C3%BCcher', admin)).json.at(-1).email, ascii)
  })

  test('is locked in all its forms', async () => {
    const { forms } = createAddresses()
    for (let i = 0; i < 6; i++) await logIn(api, forms[i % 3]!, 'wrong')
    for (const form of forms) assert.equal((await logIn(api, form)).status, 403)
  })

  test('is one row of an import', async () => {
    const { ascii, forms } = createAddresses()
    const accounts = forms.map((email) => ({ email, password_hash: bcrypt.hashSync(PASSWORD, 4) }))
    const { json } = await api.post('/api/v1/auth/users/import', { ...admin, json: { accounts } })
    assert.deepEqual([json.created, json.exists, json.accounts[0].email], [1, 2, ascii])
  })

  test('gets invites, resets and changes of address', async () => {
    const { ascii, forms } = createAddresses()
    const org = await api.post('/api/v1/orgs', { ...user, json: { name: 'Mill', slug: `mill-${count}` } })
    const invites = `/api/v1/orgs/${org.json.id}/invites`
    const invited = await api.post(invites, { ...user, json: { email: forms[0] } })
    assert.deepEqual([invited.status, invited.json.email], [201, ascii])
    for (const form of forms)
      assert.equal((await api.post(invites, { ...user, json: { email: form } })).json.code, 'invite.pending')
    await register(forms[2]!)
    const members = await api.get(`/api/v1/orgs/${org.json.id}/members/details`, user)
    assert.ok(members.json.some((member: { email: string }) => member.email === ascii))
    await readMails()
    for (const form of forms) {
      await api.post('/api/v1/auth/password-reset/request', { json: { email: form } })
      assert.deepEqual(
        (await readMails()).map(({ to }) => to),
        [ascii],
      )
    }
    const { token } = (await register(createAddresses().ascii)).json
    assert.equal(token, undefined)
    const json = { email: forms[0], password: PASSWORD }
    const change = await api.post('/api/v1/auth/me/email', { token: user.token, json })
    assert.deepEqual([change.status, change.json.email], [201, ascii])
  })

  test('is suppressed in all its forms', async () => {
    const { ascii, forms } = createAddresses()
    const suppress = () =>
      query(
        `insert into comms_suppression (address, reason, send_id) values ($1, 'bounced', gen_random_uuid())
         on conflict do nothing`,
        [ascii],
      )
    for (const form of forms) {
      await suppress()
      const json = { to: [form], subject: 'Hello', text: 'Hello' }
      const sent = await api.post('/api/v1/comms/email/send', { ...admin, json })
      assert.equal(sent.json.code, 'email.suppressed', sent.text)
      const lifted = await api.call('DELETE', `/api/v1/comms/suppressions/${encodeURIComponent(form)}`, admin)
      assert.equal(lifted.status, 204)
    }
  })
})

test('an address beyond the limits of mail is refused everywhere', async () => {
  for (const email of [`${'a'.repeat(65)}@example.com`, `a@${'b'.repeat(64)}.com`, 'a@-.example']) {
    assert.equal((await register(email)).status, 422, email)
    for (const json of [
      { to: [email], subject: 'Hello', text: 'Hello' },
      { to: ['a@example.com'], reply_to: email, subject: 'Hello', text: 'Hello' },
    ])
      assert.equal((await api.post('/api/v1/comms/email/send', { ...admin, json })).status, 422, email)
  }
})
