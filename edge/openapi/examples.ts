/** Generates the examples of the reference from the schemas, so that each one is valid. */

type Json = Record<string, unknown>

// Typical values by field name; skipped where the schema does not allow them.
const VALUES_BY_NAME: Readonly<Record<string, unknown>> = {
  email: 'ann@example.com',
  username: 'ann@example.com',
  to: '+14155552671',
  from: 'mill@example.com',
  password: 'correct horse',
  new_password: 'battery staple',
  current_password: 'correct horse',
  full_name: 'Ann Miller',
  author_name: 'Ann Miller',
  editor_name: 'Ann Miller',
  role: 'admin',
  title: 'Annual report',
  name: 'Mill and Sons',
  org_name: 'Mill and Sons',
  slug: 'annual-report',
  org_slug: 'mill-and-sons',
  tag_slugs: ['news'],
  content: '# Annual report\n\nIt was a good year.',
  text: 'It was a good year.',
  subject: 'The annual report',
  body: 'It was a good year.',
  message: 'What was in the annual report?',
  label: 'Page 3 of 9: text layer',
  queue: 'documents',
  queue_type: 'system',
  task_name: 'io_simulation_task',
  detail: 'Done',
  code: 'job.crashed',
  cron: '30 2 * * *',
  time_zone: 'Europe/Berlin',
  currency: 'eur',
  amount: 1200,
  total: 1,
  page: 1,
  page_size: 20,
  media_type: 'application/pdf',
  kind: 'report',
  challenge: 'pS2GkQ0fYbXn3Vt8mJc1LrW7uZe5oHd9aKxTiBvNgMs',
  channel: 'mail',
  source: 'upload',
  sha256: '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae',
  address: '192.0.2.1',
  last_address: '192.0.2.1',
  place: 'DE',
  last_place: 'DE',
  device: 'Firefox 132 on Linux',
  user_agent: 'curl/8.5.0',
  script_url: 'https://example.com/call.xml',
  hero_image_url: 'https://example.com/picture.png',
  domain: 'example.com',
  price_id: 'price_1234',
  model: 'gpt-4o-mini',
  provider: 'openai',
  vendor: 'openai',
  query: 'winter supplies',
  collection_name: 'handbook',
  path: 'docs',
  access_token: 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl',
  action: 'chat',
  api_key_env_var: 'OPENAI_API_KEY',
  bcc: 'archive@example.com',
  cc: 'bob@example.com',
  reply_to: 'office@example.com',
  from_email: 'mill@example.com',
  cancel_url: 'https://example.com/cancelled',
  success_url: 'https://example.com/paid',
  checkout_url: 'https://checkout.stripe.com/c/pay/cs_test_1234',
  category: 'general',
  description: 'Mills of the valley since 1871',
  embedding_model: 'text-embedding-3-small',
  engine: 'openai',
  error: 'The endpoint answered 500',
  event: 'job.done',
  event_type: 'charge.dispute.created',
  excerpt: 'It was a good year.',
  feature: 'streaming',
  file: 'report.md',
  file_name: 'handbook.md',
  filename: 'invoice.pdf',
  hint: 'mill_live_Xk3f…',
  html: '<p>It was a good year.</p>',
  interval: 'month',
  key: 'mill_live_Xk3f9aQ2Lr7TzB1mW8cV5nD0sY6hP4jG',
  level: 'warn',
  missing: 'EMAIL_PROVIDER_API_KEY',
  model_id: 'gpt-4o-mini',
  fallback_model_id: 'anthropic/claude-haiku-4-5',
  next: 'WyIyMDI2LTAzLTAxVDA5OjMwOjAwWiIsNDJd',
  note: 'Board meeting of March',
  openapi: '3.1.0',
  plan_name: 'Standard',
  preview_text: 'Good morning.',
  product_id: 'prod_1234',
  provider_dispute_id: 'dp_1234',
  provider_id: 'openai',
  provider_status: 'delivered',
  provider_subscription_id: 'sub_1234',
  provider_transaction_id: 'pi_1234',
  providers_supported: 'openai',
  provider_supported: 'openai',
  prompt: 'Zoë, Millrace',
  language: 'en',
  requested_language: 'en',
  speaker: 'A',
  purpose: 'Sending',
  rag_collection: 'handbook',
  reason: 'Ordered twice',
  refusal: 'It has no models',
  region: 'eu-west-1',
  request_id: 'q3hB7x1D-1f',
  scope: 'jobs:read',
  search: 'timed out',
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  seo_description: 'How the year went',
  seo_title: 'Annual report',
  service: 'ai',
  session_id: 'cs_test_1234',
  setup_token: 'Xk3f9aQ2Lr7TzB1mW8cV5nD0',
  sid: 'SM0123456789abcdef0123456789abcdef',
  snippet: 'The mill ground 1,284 sacks.',
  stt_language: 'en',
  stt_model: 'whisper-1',
  stt_provider: 'openai',
  system_prompt: 'Answer in one sentence.',
  tag: 'invoices',
  template: 'welcome',
  task: 'documents.extract',
  token: 'Xk3f9aQ2Lr7TzB1mW8cV5nD0sY6hP4jG',
  ttl: 'Auto',
  tts_model: 'tts-1',
  tts_provider: 'openai',
  tts_voice: 'alloy',
  type: 'TXT',
  url: 'https://example.com/hooks/mill',
  user_id: 'customer-17',
  validation_error: 'OPENAI_API_KEY is not set',
  value: 'v=spf1 include:amazonses.com ~all',
  version: '1.0.1',
  voice_id: 'alloy',
  cost: '0.0000048',
  arguments: '{"city":"Oslo"}',
  tool_call_id: 'call_1',
  owned_by: 'millrace',
  worker: 'host-1:4021',
  id: 're_1234',
  status: 'queued',
  exclude_pattern: 'drafts/',
  extension: 'md',
  last_detail: 'The time limit was reached',
  created_at: '2026-03-01T09:30:00.000Z',
  document_date: '2026-03-01',
}
const VALUES_BY_FORMAT: Readonly<Record<string, string>> = {
  'date-time': '2026-03-01T09:30:00.000Z',
  date: '2026-03-01',
  uuid: '01a20118-fbcc-738c-80ed-00058e0e401d',
  email: 'ann@example.com',
  uri: 'https://example.com/',
}
// Tried last.
const FALLBACK_STRINGS = ['annual-report', '1', 'abc', 'ABC', '+14155552671', 'file.pdf', 'true', '287082']
const MAX_DEPTH = 8

/** Returns a value that the schema allows; undefined if none is known. */
export function makeExample(
  schema: Json,
  components: Readonly<Record<string, Json>>,
  name = '',
  depth = 0,
): unknown {
  if (depth > MAX_DEPTH) return undefined
  const exampleFor = (inner: unknown, as = name): unknown =>
    makeExample(inner as Json, components, as, depth + 1)
  if (typeof schema.$ref === 'string') return exampleFor(components[schema.$ref.split('/').at(-1)!] ?? {})
  if (Array.isArray(schema.examples)) return schema.examples[0]
  if ('const' in schema) return schema.const
  if (Array.isArray(schema.enum)) return schema.enum[0]
  const choices = (schema.anyOf ?? schema.oneOf) as Json[] | undefined
  if (choices !== undefined) return chooseAlternative(choices, name, exampleFor)
  if (Array.isArray(schema.allOf)) return undefined
  const type = Array.isArray(schema.type) ? schema.type.find((each) => each !== 'null') : schema.type
  if (type === 'object') return makeObject(schema, exampleFor)
  if (type === 'array') return makeArray(schema, name, exampleFor)
  if (type === 'string') return makeString(schema, name)
  if (type === 'integer' || type === 'number') return makeNumber(schema, name)
  if (type === 'boolean') return true
  return type === 'null' ? null : {}
}

/** Returns the first alternative that is not null, or null for fields that are usually empty, such as errors. */
function chooseAlternative(
  choices: readonly Json[],
  name: string,
  exampleFor: (schema: unknown) => unknown,
): unknown {
  const nullable = choices.some(({ type }) => type === 'null')
  if (nullable && /error|refus|_at$|retry_of|supersede|every_seconds/.test(name) && name !== 'created_at')
    return null
  return exampleFor(choices.find(({ type }) => type !== 'null') ?? choices[0])
}

function makeObject(schema: Json, exampleFor: (schema: unknown, name: string) => unknown): unknown {
  const required = new Set((schema.required as string[] | undefined) ?? [])
  const entries: [string, unknown][] = []
  for (const [name, property] of Object.entries((schema.properties as Json | undefined) ?? {})) {
    const value = exampleFor(property, name)
    if (value !== undefined) entries.push([name, value])
    else if (required.has(name)) return undefined
  }
  return Object.fromEntries(entries)
}

function makeArray(
  schema: Json,
  name: string,
  exampleFor: (schema: unknown, name: string) => unknown,
): unknown {
  const known = VALUES_BY_NAME[name]
  if (Array.isArray(known)) return known
  const item = exampleFor(schema.items ?? {}, name.replace(/s$/, ''))
  if (item === undefined) return (schema.minItems as number | undefined) ? undefined : []
  return Array.from({ length: Math.max(1, Number(schema.minItems ?? 1)) }, () => item)
}

function makeString(schema: Json, name: string): string | undefined {
  const {
    format,
    pattern,
    minLength = 0,
    maxLength = Number.POSITIVE_INFINITY,
  } = schema as {
    format?: string
    pattern?: string
    minLength?: number
    maxLength?: number
  }
  const others = pattern === undefined && format === undefined ? [] : FALLBACK_STRINGS
  const known = [VALUES_BY_NAME[name], format === undefined ? undefined : VALUES_BY_FORMAT[format], ...others]
  const fits = format === undefined || VALUES_BY_FORMAT[format] === undefined ? known : known.slice(1, 2)
  return fits.find(
    (text): text is string =>
      typeof text === 'string' &&
      text.length >= minLength &&
      text.length <= maxLength &&
      (pattern === undefined || format !== undefined || new RegExp(pattern, 'u').test(text)),
  )
}

function makeNumber(schema: Json, name: string): number {
  const known = VALUES_BY_NAME[name]
  const { minimum, maximum, exclusiveMinimum } = schema as Record<string, number | undefined>
  const min = minimum ?? (exclusiveMinimum === undefined ? 1 : exclusiveMinimum + 1)
  const value = typeof known === 'number' ? known : 1
  return Math.min(Math.max(value, min), maximum ?? Number.POSITIVE_INFINITY)
}
