/** Examples generated from the schemas themselves, so that none can be wrong. */

type Json = Record<string, unknown>

// Typical values by field name; those that a schema does not allow are skipped.
const BY_NAME: Readonly<Record<string, unknown>> = {
  email: 'ann@example.com',
  username: 'ann@example.com',
  to: '+14155552671',
  from: 'mill@example.com',
  password: 'correct horse',
  new_password: 'battery staple',
  current_password: 'correct horse',
  full_name: 'Ann Miller',
  author_name: 'Ann Miller',
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
  currency: 'eur',
  amount: 1200,
  total: 1,
  page: 1,
  page_size: 20,
  media_type: 'application/pdf',
  kind: 'report',
  channel: 'mail',
  source: 'upload',
  sha256: '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae',
  address: '192.0.2.1',
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
}
const BY_FORMAT: Readonly<Record<string, string>> = {
  'date-time': '2026-03-01T09:30:00.000Z',
  date: '2026-03-01',
  uuid: '01a20118-fbcc-738c-80ed-00058e0e401d',
  email: 'ann@example.com',
  uri: 'https://example.com/',
}
// Tried last, for strings with a pattern.
const TEXTS = ['Annual report', 'annual-report', '1', 'abc', 'ABC', '+14155552671', 'file.pdf', 'true']
const DEEPEST = 8

/** A value that the schema allows; undefined when none is known. */
export function exampleOf(
  schema: Json,
  components: Readonly<Record<string, Json>>,
  name = '',
  depth = 0,
): unknown {
  if (depth > DEEPEST) return undefined
  const of = (inner: unknown, as = name): unknown => exampleOf(inner as Json, components, as, depth + 1)
  if (typeof schema.$ref === 'string') return of(components[schema.$ref.split('/').at(-1)!] ?? {})
  if (Array.isArray(schema.examples)) return schema.examples[0]
  if ('const' in schema) return schema.const
  if (Array.isArray(schema.enum)) return schema.enum[0]
  const choices = (schema.anyOf ?? schema.oneOf) as Json[] | undefined
  if (choices !== undefined) return chosen(choices, name, of)
  if (Array.isArray(schema.allOf)) return undefined
  const type = Array.isArray(schema.type) ? schema.type.find((each) => each !== 'null') : schema.type
  if (type === 'object') return objectOf(schema, of)
  if (type === 'array') return arrayOf(schema, name, of)
  if (type === 'string') return textOf(schema, name)
  if (type === 'integer' || type === 'number') return numberOf(schema, name)
  if (type === 'boolean') return true
  return type === 'null' ? null : {}
}

/** The first alternative that is not null, but null for fields that are usually empty, such as errors. */
function chosen(choices: readonly Json[], name: string, of: (schema: unknown) => unknown): unknown {
  const nullable = choices.some(({ type }) => type === 'null')
  if (nullable && /error|refus|_at$|retry_of|supersede/.test(name) && name !== 'created_at') return null
  return of(choices.find(({ type }) => type !== 'null') ?? choices[0])
}

function objectOf(schema: Json, of: (schema: unknown, name: string) => unknown): unknown {
  const required = new Set((schema.required as string[] | undefined) ?? [])
  const entries: [string, unknown][] = []
  for (const [name, property] of Object.entries((schema.properties as Json | undefined) ?? {})) {
    const value = of(property, name)
    if (value !== undefined) entries.push([name, value])
    else if (required.has(name)) return undefined
  }
  return Object.fromEntries(entries)
}

function arrayOf(schema: Json, name: string, of: (schema: unknown, name: string) => unknown): unknown {
  const known = BY_NAME[name]
  if (Array.isArray(known)) return known
  const item = of(schema.items ?? {}, name.replace(/s$/, ''))
  if (item === undefined) return (schema.minItems as number | undefined) ? undefined : []
  return Array.from({ length: Math.max(1, Number(schema.minItems ?? 1)) }, () => item)
}

function textOf(schema: Json, name: string): string | undefined {
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
  const known = [BY_NAME[name], format === undefined ? undefined : BY_FORMAT[format], ...TEXTS]
  const fits = format === undefined || BY_FORMAT[format] === undefined ? known : known.slice(1, 2)
  return fits.find(
    (text): text is string =>
      typeof text === 'string' &&
      text.length >= minLength &&
      text.length <= maxLength &&
      (pattern === undefined || format !== undefined || new RegExp(pattern, 'u').test(text)),
  )
}

function numberOf(schema: Json, name: string): number {
  const known = BY_NAME[name]
  const { minimum, maximum, exclusiveMinimum } = schema as Record<string, number | undefined>
  const least = minimum ?? (exclusiveMinimum === undefined ? 1 : exclusiveMinimum + 1)
  const value = typeof known === 'number' ? known : 1
  return Math.min(Math.max(value, least), maximum ?? Number.POSITIVE_INFINITY)
}
