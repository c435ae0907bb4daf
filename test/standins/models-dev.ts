import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'

/** Server that serves a list in the format of models.dev. */
export interface ModelsDevStandIn {
  readonly url: string
  /** Number of requests so far. */
  requestCount: number
  answer: (response: ServerResponse) => void
}

export async function startModelsDev(): Promise<ModelsDevStandIn> {
  const server = createServer((_, response) => {
    standIn.requestCount++
    standIn.answer(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  after(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api.json`
  const standIn: ModelsDevStandIn = { url, requestCount: 0, answer: (response) => response.end('{}') }
  return standIn
}

type Fields = Readonly<Record<string, unknown>>

export interface ListedVendor {
  id: string
  name: string
  // biome-ignore lint/suspicious/noExplicitAny: tests put invalid values in it
  models: Record<string, any>
}

/** Returns a model in the format of models.dev. */
export const createListedModel = (id: string, more: Fields = {}): Fields => ({
  id,
  name: `Model ${id}`,
  family: 'test',
  attachment: false,
  reasoning: false,
  tool_call: true,
  open_weights: false,
  release_date: '2026-03-04',
  last_updated: '2026-03-04',
  modalities: { input: ['text', 'pdf'], output: ['text'] },
  limit: { context: 128_000, output: 4096 },
  cost: { input: 0.15, output: 0.6, cache_read: 0.075 },
  ...more,
})

/** Returns a vendor with these models, in the format of models.dev. */
export const createListedVendor = (id: string, ...models: readonly Fields[]): ListedVendor => ({
  id,
  name: id.toUpperCase(),
  ...{ env: [`${id.toUpperCase()}_API_KEY`], npm: `@ai-sdk/${id}`, doc: 'https://example.com' },
  models: Object.fromEntries(models.map((model) => [model.id, model])),
})

/** Returns a list that passes validation: four models of each of the six providers, and another vendor. */
export function createPlausibleList(): Record<string, ListedVendor> {
  const six = ['openai', 'anthropic', 'google', 'groq', 'mistral', 'cohere']
  const vendors = six.map((id) =>
    createListedVendor(id, ...[1, 2, 3, 4].map((n) => createListedModel(`${id}-${n}`))),
  )
  return Object.fromEntries(
    [...vendors, createListedVendor('else', createListedModel('vendor/model'))].map((v) => [v.id, v]),
  )
}
