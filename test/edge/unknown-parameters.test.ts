import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isJobBacked } from '../../edge/pipeline/route.ts'
import { areas } from '../../edge/routes/index.ts'
import { getSharedEdge } from './harness.ts'

/** The edge rejects undeclared query parameters by name, so that a misspelled one is not silently ignored. */

const { api, admin } = await getSharedEdge()

interface Parameter {
  readonly name: string
  readonly in: string
  readonly schema: { readonly type?: string; readonly format?: string }
}
const { paths } = (await api.get('/openapi.json')).json as {
  paths: Record<string, Record<string, { parameters?: Parameter[] }>>
}
const operations = areas.flatMap((area) =>
  area.routes.map((route) => {
    const path = `${area.prefix}${route.path}` || '/'
    const { parameters = [] } = paths[path.replace(/:(\w+)/g, '{$1}')]![route.method]!
    const filled = path.replace(/:(\w+)/g, (_, name) => {
      const { schema } = parameters.find((each) => each.name === name && each.in === 'path')!
      if (schema.format === 'uuid') return '01a20118-fbcc-738c-80ed-00058e0e401d'
      return schema.type === 'integer' ? '1' : 'example.com'
    })
    return { area, route, path: filled, parameters }
  }),
)

describe('an undeclared query parameter', () => {
  for (const { area, route, path } of operations) {
    const url = `${path}?surprise=1`
    const call = () => api.call(route.method.toUpperCase(), url, { token: admin.token })
    if (area.allowsAnyQuery)
      test(`is accepted by ${route.method} ${path}`, async () => {
        assert.notEqual((await call()).status, 422)
      })
    else
      test(`is rejected by ${route.method} ${path}, and the error lists the valid ones`, async () => {
        const { status, json } = await call()
        assert.equal(status, area.invalidStatus, JSON.stringify(json))
        assert.deepEqual(
          json.errors.map(({ loc, type }: { loc: unknown; type: string }) => [loc, type]),
          [[['query', 'surprise'], 'unrecognized_keys']],
        )
        const known = operations
          .find((one) => one.route === route)!
          .parameters.filter((each) => each.in === 'query')
          .map(({ name }) => name)
        assert.equal(
          json.detail,
          `surprise: is not a parameter; ${known.length === 0 ? 'there are none' : `valid parameters: ${known.join(', ')}`}`,
        )
        if (isJobBacked(route)) assert.equal(known.includes('background'), !route.alwaysWaits)
      })
  }

  test('is reported once, with a limited number and length of names', async () => {
    const names = Array.from({ length: 15 }, (_, n) => `${n}${'x'.repeat(110)}`)
    const { json } = await api.get(
      `/api/v1/auth/me?${[...names, ...names].map((name) => `${name}=1`).join('&')}`,
      {
        token: admin.token,
      },
    )
    assert.deepEqual([json.errors.length, json.errors[0].loc[1].length], [10, 100])
  })
})
