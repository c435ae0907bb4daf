import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../until.ts'
import { createKey } from './api-keys-help.ts'
import { createRecording, holdRequests, send, startTranscribing } from './transcriptions-help.ts'

/** Transcriptions reserve their estimated cost, and count for the budgets of the account and of the API key. */

const { server, api, query, newcomer } = await startTranscribing()

test('a transcription reserves the cost of its estimated length until it ends, and books it to the key', async () => {
  const account = await newcomer()
  const { id, key } = await createKey(api, account, { scopes: ['*:write'], budget: { day_cost: 5 } })
  const readState = async () => {
    const { json } = await api.get('/api/v1/ai/usage/budget', { token: key })
    return (json.key as { kind: string; used: number; reserved: number }[]).find(
      ({ kind }) => kind === 'day_cost',
    )!
  }
  const held = holdRequests(server)
  const pending = send(api, key, createRecording(60))
  await until('the provider is asked', async () => held.waiting === 1)
  const { used, reserved } = await readState()
  assert.equal(used, 0)
  assert.ok(reserved > 0 && reserved < 0.05, String(reserved))
  held.go()
  assert.equal((await pending).status, 200)
  const after = await readState()
  assert.equal(after.reserved, 0)
  const [usage] = await query('select cost::float8 as cost from ai_usage where key_id = $1', [id])
  assert.ok((usage!.cost as number) > 0)
  assert.equal(after.used, usage!.cost)
})
