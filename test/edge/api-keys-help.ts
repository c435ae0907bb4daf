import assert from 'node:assert/strict'
import type { Account, Answered, Api } from './harness.ts'

export const KEYS = '/api/v1/auth/keys'

/** Fields of a new key, each with a default. */
export interface KeyFields {
  readonly name?: string
  readonly scopes?: readonly string[]
  readonly expires_at?: string
  readonly organization_id?: number
  readonly budget?: Readonly<Record<string, number | null>>
}

export const requestKey = (
  api: Api,
  { token }: Pick<Account, 'token'>,
  wanted: KeyFields = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Answered> =>
  api.post(KEYS, { token, json: { name: 'a program', scopes: ['*:write'], ...wanted }, headers })

/** Creates a key and returns it with its id. */
export async function createKey(
  api: Api,
  account: Pick<Account, 'token'>,
  wanted?: KeyFields,
): Promise<{ id: string; key: string }> {
  const answer = await requestKey(api, account, wanted)
  assert.equal(answer.status, 201, answer.text)
  return answer.json
}

export const deleteKey = (api: Api, { token }: Pick<Account, 'token'>, id: string): Promise<Answered> =>
  api.call('DELETE', `${KEYS}/${id}`, { token })
