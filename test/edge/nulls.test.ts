import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { parsePart } from '../../edge/pipeline/request/input.ts'
import { type AnyRoute, type Area, area, route } from '../../edge/pipeline/route.ts'
import { areas } from '../../edge/routes/index.ts'
import { getSharedEdge, startEdge } from './harness.ts'

/** In the body of every operation `null` for an optional field must mean "not given". */

type Schema = Readonly<Record<string, unknown>>
interface Operation {
  readonly requestBody?: { readonly content: Record<string, { schema: Schema; example?: unknown }> }
}

const { api, url } = await getSharedEdge()
const reference = (await api.get('/openapi.json')).json as {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}
const pathOf = (area: Area, { path }: AnyRoute) => `${area.prefix}${path}`.replace(/:(\w+)/g, '{$1}') || '/'
const bodies = areas.flatMap((area) =>
  area.routes.flatMap((route) => {
    if (route.body === undefined || (route.bodyType ?? 'json') !== 'json') return []
    const content = reference.paths[pathOf(area, route)]![route.method]!.requestBody!.content
    const { schema, example } = content['application/json']!
    return [{ name: `${route.method} ${pathOf(area, route)}`, route, schema, example: example as Schema }]
  }),
)
const resolveRef = (schema: Schema): Schema =>
  typeof schema.$ref === 'string' ? reference.components.schemas[schema.$ref.split('/').at(-1)!]! : schema
const isNullable = (schema: Schema): boolean =>
  schema.type === 'null' ||
  (Array.isArray(schema.type) && schema.type.includes('null')) ||
  (Array.isArray(schema.anyOf) && schema.anyOf.some((one) => isNullable(resolveRef(one as Schema)))) ||
  (schema.type === undefined && schema.anyOf === undefined && schema.$ref === undefined)

/** Returns the parsed body, or the locations of its errors. */
function parseBody({ body }: AnyRoute, value: unknown): unknown {
  try {
    return { value: parsePart(body, 'body', value) }
  } catch (error) {
    return { problems: (error as { problems: readonly { loc: unknown }[] }).problems.map(({ loc }) => loc) }
  }
}

function listOptionals({ schema, example }: (typeof bodies)[number]) {
  const { properties = {}, required = [] } = resolveRef(schema) as {
    properties?: Record<string, Schema>
    required?: readonly string[]
  }
  const names = Object.keys(properties).filter((name) => !required.includes(name))
  return { names, properties, full: Object.fromEntries(Object.entries(example ?? {})) as Schema }
}

const omitField = (body: Schema, name: string) =>
  Object.fromEntries(Object.entries(body).filter(([key]) => key !== name))

test('null for an optional field parses as if absent, unless null has its own meaning', () => {
  let checked = 0
  for (const body of bodies) {
    const { names, full } = listOptionals(body)
    const shape = body.route.body as unknown as { shape?: Record<string, z.ZodType> }
    for (const name of names) {
      const [given, absent] = [{ ...full, [name]: null }, omitField(full, name)].map((one) =>
        parseBody(body.route, one),
      )
      const own = shape.shape?.[name]?.safeParse(null).success === true
      if (own) assert.ok('value' in (given as object), `${body.name}: ${name}`)
      else assert.deepEqual(given, absent, `${body.name}: ${name}`)
      checked++
    }
    const nulls = { ...full, ...Object.fromEntries(names.map((name) => [name, null])) }
    const problems = (parseBody(body.route, nulls) as { problems?: unknown }).problems
    const bare = Object.fromEntries(Object.entries(full).filter(([name]) => !names.includes(name)))
    assert.deepEqual(problems, (parseBody(body.route, bare) as { problems?: unknown }).problems, body.name)
  }
  assert.ok(bodies.length > 30 && checked > 60, `${bodies.length} bodies, ${checked} fields`)
})

test('the reference declares every optional body field nullable', () => {
  for (const body of bodies) {
    const { names, properties } = listOptionals(body)
    for (const name of names) assert.ok(isNullable(properties[name]!), `${body.name}: ${name}`)
  }
})

test('null clears a field only where documented', async () => {
  const Body = z.strictObject({
    kept: z.string(),
    optional: z.string().optional(),
    fallback: z.int().default(5),
    cleared: z.string().nullish(),
    inner: z.strictObject({ optional: z.int().optional() }).optional(),
    list: z.array(z.strictObject({ optional: z.int().optional() })).default([]),
  })
  const echo = await startEdge(url, {
    areas: [
      area('echo', '/echo', { auth: 'public' }, [
        route({
          method: 'post',
          path: '',
          summary: 'echoes',
          body: Body,
          response: z.unknown(),
          handle: ({ body }) => body,
        }),
        route({
          method: 'post',
          path: '/maybe',
          summary: 'echoes',
          body: z.strictObject({ a: z.int().optional() }).default({}),
          response: z.unknown(),
          handle: ({ body }) => body,
        }),
      ]),
    ],
  })
  const send = async (path: string, json: unknown) => echo.post(`/echo${path}`, { json })
  const nulls = {
    optional: null,
    fallback: null,
    cleared: null,
    inner: { optional: null },
    list: [{ optional: null }],
  }
  assert.deepEqual((await send('', { kept: 'x', ...nulls })).json, {
    kept: 'x',
    fallback: 5,
    cleared: null,
    inner: {},
    list: [{}],
  })
  assert.deepEqual((await send('/maybe', null)).json, {})
  for (const wrong of [{ kept: null }, { kept: 'x', unknown: null }, { kept: 'x', list: [null] }, null])
    assert.equal((await send('', wrong)).status, 422, JSON.stringify(wrong))
})
