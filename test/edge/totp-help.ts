import assert from 'node:assert/strict'
import { decodeBase32, useEarlierCode } from '../totp.ts'
import { type Account, type Answered, type Api, PASSWORD } from './harness.ts'

export const TOTP_PATH = '/api/v1/auth/totp'

export interface SecuredAccount extends Account {
  readonly secret: Buffer
  readonly recoveryCodes: readonly string[]
}

/** Signs in with a password and further fields. */
export const signInWith = (
  api: Api,
  username: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Answered> => api.post('/api/v1/auth/token', { form: { username, password: PASSWORD, ...more } })

/** Enables one-time codes with the code of an earlier step, so that the current code stays unused. */
export async function enableTotp(api: Api, account: Account): Promise<SecuredAccount> {
  const begun = await api.post(TOTP_PATH, { token: account.token, json: {} })
  assert.equal(begun.status, 200, begun.text)
  const secret = decodeBase32(begun.json.secret)
  const confirmed = await useEarlierCode(secret, (code) =>
    api.post(`${TOTP_PATH}/confirm`, { token: account.token, json: { code } }),
  )
  assert.equal(confirmed.status, 200, confirmed.text)
  return { ...account, secret, recoveryCodes: confirmed.json.recovery_codes }
}
