import fc from 'fast-check'
import { event, signature } from '../payment-events.ts'
import type { Body } from './client.ts'
import type { Operation } from './document.ts'
import type { Json } from './values.ts'
import type { Seeds } from './world.ts'

/**
 * Provides valid values that a schema alone cannot produce: names of existing rows, and fields with special meanings.
 */

type Any = fc.Arbitrary<unknown>
const any = (...values: readonly unknown[]): Any => fc.constantFrom(...values)
const word = fc.stringMatching(/^[a-z]{1,12}$/)

/** Returns a lookup of values by the name of a body field or query parameter. */
export function knownFields(seeds: Seeds): (name: string, schema: Json) => Any | undefined {
  const email = fc.oneof(
    any(...seeds.emails),
    word.map((text) => `${text}@example.com`),
  )
  const phone = any('+14155550123', '+442071838750')
  const texts: Readonly<Record<string, Any>> = {
    ...{ email, username: email, password: any('correct horse'), new_password: any('battery staple') },
    ...{ current_password: any('correct horse', 'battery staple'), token: any(...seeds.tokens) },
    ...{
      slug: fc.oneof(word, any(...seeds.slugs)),
      role: any('admin', 'member', 'owner', 'moderator', 'user'),
    },
    ...{ user_id: any('900001', 'api-user', 'bob'), conversation_id: any(...seeds.conversations) },
    ...{ collection_name: any(...seeds.collections), rag_collection: any(...seeds.collections) },
    ...{ path: any('.', 'more', 'a.md'), query: any('grain', '"the wheel"', 'water -stones', 'mills') },
    ...{ agent_slug: any('assistant'), voice_id: any('alloy', 'nova'), price_id: any('price_1', 'price_2') },
    ...{ tts_provider: any('openai'), tts_model: any('tts-1', 'gpt-4o-mini-tts'), tts_voice: any('alloy') },
    ...{ stt_provider: any('openai'), stt_model: any('whisper-1'), stt_language: any('en', 'de') },
    ...{
      script_url: any('https://example.com/call'),
      hero_image_url: any('/a.png', 'https://example.com/a.png'),
    },
    ...{
      success_url: any('/thanks', 'https://example.com/?id={CHECKOUT_SESSION_ID}'),
      cancel_url: any('/no'),
    },
    ...{
      background: any('true', 'false', '1', '0'),
      include_superseded: any('true', 'false'),
      hits: any('true', 'false'),
      trashed: any('true', 'false'),
      permanent: any('true', 'false'),
      force: any('true'),
      language: any('eng', 'eng+eng'),
    },
    ...{
      from_email: any('service@example.com', 'other@example.net'),
      reply_to: email,
      vendor: any('openai'),
    },
    ...{
      model_id: any('gpt-4.1', null),
      model: any('gpt-4.1', 'gpt-4o-mini', 'tts-1'),
      include_disabled: any('true'),
      label: any('blue', 'red', 'grün'),
    },
    ...{ name: fc.oneof(word, any('mail.example.com', 'example.com')), region: any('eu-west-1') },
  }
  const lists: Readonly<Record<string, Any>> = {
    tag_slugs: any([], ['news']),
    user_ids: fc.array(any(...seeds.accounts), { maxLength: 3 }),
    to: fc.array(email, { minLength: 1, maxLength: 2 }),
    cc: fc.array(email, { maxLength: 1 }),
    bcc: fc.array(email, { maxLength: 1 }),
  }
  const numbers: Readonly<Record<string, Any>> = {
    user_id: any(...seeds.accounts),
    supersedes_id: any(...seeds.documents),
    amount: any(1, 100, 2000),
  }
  return (name, schema) => {
    // Never false: an inactive agent or account could not be used afterwards.
    if (name === 'is_active') return any(true)
    if (schema.type === 'array') return lists[name]
    if (schema.type === 'integer') return numbers[name]
    if (name === 'to' || name === 'phone') return phone
    if (String(schema.pattern).startsWith('^-?\\d')) return any('1', '2', '20')
    if (schema.type !== 'string' || 'enum' in schema) return undefined
    return texts[name]
  }
}

/** Returns a lookup of values by path and parameter name. */
export function knownParts(seeds: Seeds): (operation: Operation, name: string) => readonly unknown[] {
  const ofPath: readonly (readonly [RegExp, readonly unknown[]])[] = [
    [/\/transactions\/\{id}|\/refund\/\{id}/, seeds.transactions],
    [/\/subscriptions\/\{id}/, seeds.subscriptions],
    [/\/disputes\/\{id}/, seeds.disputes],
    [/\/sends\/\{id}/, seeds.sends],
    [/\/documents\/\{id}/, seeds.documents],
    [/\/posts\/\{post}$/, seeds.posts],
    [/\/schedules\/\{name}/, ['collect', 'retention', 'llm-sync']],
    [/\/pages\/monitor\/\{file}/, ['main.js', 'api.js']],
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
      file: ['page.css', 'mark.svg'],
    },
  }
  return (operation, name) => {
    if (name === 'post' && operation.method === 'GET') return seeds.slugs
    return (
      ofPath.find(([pattern]) => pattern.test(operation.path) && name in ID_NAMES)?.[1] ?? named[name] ?? []
    )
  }
}
const ID_NAMES = { id: 0, post: 0, file: 0, name: 0 }

const load = fc.record({ operations: fc.constant(1), duration_ms: fc.integer({ min: 0, max: 5 }) })
const TASKS: Any = fc.oneof(
  fc.record({ task_name: any('io_simulation_task'), queue_type: any('load_test', 'system'), args: load }),
  fc.record({
    task_name: any('failure_testing_task', 'noop', 'prune', 'unknown'),
    queue_type: any('system', 'load_test', 'unknown'),
    count: fc.integer({ min: 1, max: 3 }),
    delay_seconds: any(0, 0.01, 2_592_000),
  }),
  fc.record({
    task_name: any('cpu_intensive_task'),
    queue_type: any('load_test'),
    args: fc.record({ duration_ms: fc.integer({ min: 1, max: 5 }) }),
  }),
  fc.record({
    task_name: any('load_test_orchestrator'),
    queue_type: any('load_test'),
    args: fc.record({ count: fc.integer({ min: 1, max: 3 }), args: load }),
  }),
)

// A collection has either files or documents, never both.
const COLLECTIONS: Any = fc.oneof(
  fc.record({ collection_name: word, path: any('.', 'more', 'a.md') }),
  fc.record({
    collection_name: word,
    documents: fc.record(
      {
        tag: any('blue'),
        kind: any('other', 'letter'),
        ids: fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 3 }),
        search: any('words', '"the wheel" -stones'),
      },
      { requiredKeys: [] },
    ),
  }),
)

/** Complete bodies by operation, if its schema says little or its work could be too expensive. */
export const WHOLE: Readonly<Record<string, Any>> = {
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
]

/** Returns a provider event with arbitrary content and a valid signature. */
export function signedEvent(
  value: fc.Arbitrary<unknown>,
): fc.Arbitrary<{ body: Body; headers: Readonly<Record<string, string>> }> {
  const ids = { id: any('pi_1', 'ch_1', 'sub_1', 'in_1'), customer: any('cus_owner', 'cus_2', null) }
  const fields = {
    ...{ ...ids, amount: any(100, 0), currency: any('usd'), status: any('succeeded', 'active', 'won') },
    ...{ created: any(1_700_000_000), payment_intent: any('pi_1', null), charge: any('ch_1') },
    odd: value,
  }
  const object = fc.oneof(
    fc.record(fields, { requiredKeys: ['id'] }),
    fc.dictionary(fc.constantFrom(...Object.keys(fields)), value),
  )
  return fc.tuple(any(...EVENT_TYPES), object).map(([type, data]) => {
    const made = event(type as string, data as Record<string, unknown>)
    const text = JSON.stringify(made)
    const headers = { 'content-type': 'application/json', 'stripe-signature': signature(text) }
    return { body: { bytes: () => Buffer.from(text) }, headers }
  })
}
