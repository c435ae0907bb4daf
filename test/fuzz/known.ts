import fc from 'fast-check'
import { createEvent, signEvent } from '../payment-events.ts'
import type { Body } from './client.ts'
import type { Operation } from './document.ts'
import type { Json } from './values.ts'
import type { Seeds } from './world.ts'

/**
 * Provides valid values that a schema alone cannot produce: names of existing rows, and fields with special meanings.
 */

type AnyArbitrary = fc.Arbitrary<unknown>
const anyOf = (...values: readonly unknown[]): AnyArbitrary => fc.constantFrom(...values)
const word = fc.stringMatching(/^[a-z]{1,12}$/)

/** Returns a lookup of values by the name of a body field or query parameter. */
export function createFieldLookup(seeds: Seeds): (name: string, schema: Json) => AnyArbitrary | undefined {
  const email = fc.oneof(
    anyOf(...seeds.emails),
    word.map((text) => `${text}@example.com`),
  )
  const phone = anyOf('+14155550123', '+442071838750')
  const texts: Readonly<Record<string, AnyArbitrary>> = {
    ...{ email, username: email, password: anyOf('correct horse'), new_password: anyOf('battery staple') },
    ...{ current_password: anyOf('correct horse', 'battery staple'), token: anyOf(...seeds.tokens) },
    ...{
      slug: fc.oneof(word, anyOf(...seeds.slugs)),
      role: anyOf('admin', 'member', 'owner', 'moderator', 'user'),
    },
    ...{ user_id: anyOf('900001', 'api-user', 'bob'), conversation_id: anyOf(...seeds.conversations) },
    ...{ collection_name: anyOf(...seeds.collections), rag_collection: anyOf(...seeds.collections) },
    ...{ path: anyOf('.', 'more', 'a.md'), query: anyOf('grain', '"the wheel"', 'water -stones', 'mills') },
    ...{
      agent_slug: anyOf('assistant'),
      voice_id: anyOf('alloy', 'nova'),
      price_id: anyOf('price_1', 'price_2'),
    },
    ...{
      tts_provider: anyOf('openai'),
      tts_model: anyOf('tts-1', 'gpt-4o-mini-tts'),
      tts_voice: anyOf('alloy'),
    },
    ...{ stt_provider: anyOf('openai'), stt_model: anyOf('whisper-1'), stt_language: anyOf('en', 'de') },
    ...{
      script_url: anyOf('https://example.com/call'),
      hero_image_url: anyOf('/a.png', 'https://example.com/a.png'),
    },
    ...{
      success_url: anyOf('/thanks', 'https://example.com/?id={CHECKOUT_SESSION_ID}'),
      cancel_url: anyOf('/no'),
    },
    ...{
      background: anyOf('true', 'false', '1', '0'),
      include_superseded: anyOf('true', 'false'),
      hits: anyOf('true', 'false'),
      trashed: anyOf('true', 'false'),
      permanent: anyOf('true', 'false'),
      force: anyOf('true'),
      language: anyOf('eng', 'eng+eng'),
    },
    ...{
      from_email: anyOf('service@example.com', 'other@example.net'),
      reply_to: email,
      vendor: anyOf('openai'),
    },
    ...{
      model_id: anyOf('gpt-4.1', null),
      model: anyOf('gpt-4.1', 'gpt-4o-mini', 'tts-1'),
      include_disabled: anyOf('true'),
      label: anyOf('blue', 'red', 'grün'),
    },
    ...{
      cron: anyOf('@daily', '*/15 * * * *', '30 2 29 feb *', '0 0 30 2 *'),
      time_zone: anyOf('UTC', 'Europe/Berlin', 'Australia/Lord_Howe', 'Mars/Olympus'),
    },
    ...{ name: fc.oneof(word, anyOf('mail.example.com', 'example.com')), region: anyOf('eu-west-1') },
  }
  const lists: Readonly<Record<string, AnyArbitrary>> = {
    tag_slugs: anyOf([], ['news']),
    user_ids: fc.array(anyOf(...seeds.accounts), { maxLength: 3 }),
    to: fc.array(email, { minLength: 1, maxLength: 2 }),
    cc: fc.array(email, { maxLength: 1 }),
    bcc: fc.array(email, { maxLength: 1 }),
  }
  const numbers: Readonly<Record<string, AnyArbitrary>> = {
    user_id: anyOf(...seeds.accounts),
    supersedes_id: anyOf(...seeds.documents),
    amount: anyOf(1, 100, 2000),
  }
  return (name, schema) => {
    // Never false: an inactive agent or account could not be used afterwards.
    if (name === 'is_active') return anyOf(true)
    if (schema.type === 'array') return lists[name]
    if (schema.type === 'integer') return numbers[name]
    if (name === 'to' || name === 'phone') return phone
    if (String(schema.pattern).startsWith('^-?\\d')) return anyOf('1', '2', '20')
    if (schema.type !== 'string' || 'enum' in schema) return undefined
    return texts[name]
  }
}

/** Returns a lookup of values by path and parameter name. */
export function createPartLookup(seeds: Seeds): (operation: Operation, name: string) => readonly unknown[] {
  const ofPath: readonly (readonly [RegExp, readonly unknown[]])[] = [
    [/\/transactions\/\{id}|\/refund\/\{id}/, seeds.transactions],
    [/\/subscriptions\/\{id}/, seeds.subscriptions],
    [/\/disputes\/\{id}/, seeds.disputes],
    [/\/sends\/\{id}/, seeds.sends],
    [/\/documents\/\{id}/, seeds.documents],
    [/\/posts\/\{post}$/, seeds.posts],
    [/\/schedules\/\{schedule_id}/, ['collect', 'retention', 'llm-sync']],
    [/\/docs\/\{file}/, ['docs.css', 'swagger-ui.css']],
  ]
  const named: Readonly<Record<string, readonly unknown[]>> = {
    ...{ user_id: seeds.accounts, org_id: seeds.orgs, invite_id: seeds.invites, post: seeds.posts },
    ...{ tag_id: seeds.tags, job_id: seeds.jobs, task_id: seeds.jobs, session_id: seeds.sessions },
    ...{ conversation_id: seeds.conversations, message_id: seeds.messages, name: seeds.collections },
    ...{ number: [1, 1, 2], label: ['blue', 'red'], slug: ['assistant'], provider_id: ['openai', 'groq'] },
    ...{
      voice_id: ['alloy', 'nova'],
      domain: ['example.com', 'new.example'],
      folder: ['parts'],
      file: ['base.css', 'mark.svg'],
    },
  }
  return (operation, name) => {
    if (name === 'post' && operation.method === 'GET') return seeds.slugs
    return (
      ofPath.find(([pattern]) => pattern.test(operation.path) && name in ID_NAMES)?.[1] ?? named[name] ?? []
    )
  }
}
const ID_NAMES = { id: 0, post: 0, file: 0, name: 0, schedule_id: 0 }

const taskLoad = fc.record({ operations: fc.constant(1), duration_ms: fc.integer({ min: 0, max: 5 }) })
const SCHEDULES: AnyArbitrary = fc.record(
  {
    ...{
      name: word,
      task_name: anyOf('noop', 'noop', 'unknown'),
      cron: anyOf('@daily', '*/5 1-3 * * mon', '0 0 30 2 *'),
    },
    ...{
      time_zone: anyOf('UTC', 'Europe/Berlin'),
      overlap: anyOf('skip', 'queue'),
      catch_up: anyOf('none', 'last'),
    },
    start_at: fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  },
  { requiredKeys: ['name', 'task_name', 'cron'] },
)
const TASKS: AnyArbitrary = fc.oneof(
  fc.record({
    task_name: anyOf('io_simulation_task'),
    queue_type: anyOf('load_test', 'system'),
    args: taskLoad,
  }),
  fc.record({
    task_name: anyOf('failure_testing_task', 'noop', 'prune', 'unknown'),
    queue_type: anyOf('system', 'load_test', 'unknown'),
    count: fc.integer({ min: 1, max: 3 }),
    delay_seconds: anyOf(0, 0.01, 2_592_000),
  }),
  fc.record({
    task_name: anyOf('cpu_intensive_task'),
    queue_type: anyOf('load_test'),
    args: fc.record({ duration_ms: fc.integer({ min: 1, max: 5 }) }),
  }),
  fc.record({
    task_name: anyOf('load_test_orchestrator'),
    queue_type: anyOf('load_test'),
    args: fc.record({ count: fc.integer({ min: 1, max: 3 }), args: taskLoad }),
  }),
)

// A collection has either files or documents, never both.
const COLLECTIONS: AnyArbitrary = fc.oneof(
  fc.record({ collection_name: word, path: anyOf('.', 'more', 'a.md') }),
  fc.record({
    collection_name: word,
    documents: fc.record(
      {
        tag: anyOf('blue'),
        kind: anyOf('other', 'letter'),
        ids: fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 3 }),
        search: anyOf('words', '"the wheel" -stones'),
      },
      { requiredKeys: [] },
    ),
  }),
)

/** Complete bodies for operations whose schema says little or whose work could be too expensive. */
export const COMPLETE_BODIES: Readonly<Record<string, AnyArbitrary>> = {
  'POST /api/v1/schedules': SCHEDULES,
  'POST /api/v1/tasks/enqueue': TASKS,
  'POST /rag/index': COLLECTIONS,
}

const EVENT_TYPES = [
  ...['payment_intent.succeeded', 'payment_intent.payment_failed', 'invoice.paid', 'charge.refunded'],
  ...[
    'customer.subscription.created',
    'customer.subscription.deleted',
    'charge.dispute.created',
    'of.nothing',
  ],
  ...['checkout.session.completed', 'radar.early_fraud_warning.created', 'charge.dispute.closed'],
  ...['refund.created', 'refund.failed', 'payment_intent.canceled', 'radar.early_fraud_warning.updated'],
]

/** Returns a provider event with arbitrary content and a valid signature. */
export function generateSignedEvent(
  value: fc.Arbitrary<unknown>,
): fc.Arbitrary<{ body: Body; headers: Readonly<Record<string, string>> }> {
  const ids = { id: anyOf('pi_1', 'ch_1', 'sub_1', 'in_1'), customer: anyOf('cus_owner', 'cus_2', null) }
  const fields = {
    ...{ ...ids, amount: anyOf(100, 0), currency: anyOf('usd'), status: anyOf('succeeded', 'active', 'won') },
    ...{ created: anyOf(1_700_000_000), payment_intent: anyOf('pi_1', null), charge: anyOf('ch_1') },
    odd: value,
  }
  const object = fc.oneof(
    fc.record(fields, { requiredKeys: ['id'] }),
    fc.dictionary(fc.constantFrom(...Object.keys(fields)), value),
  )
  return fc.tuple(anyOf(...EVENT_TYPES), object).map(([type, data]) => {
    const made = createEvent(type as string, data as Record<string, unknown>)
    const text = JSON.stringify(made)
    const headers = { 'content-type': 'application/json', 'stripe-signature': signEvent(text) }
    return { body: { bytes: () => Buffer.from(text) }, headers }
  })
}
