import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { maskSecrets } from '../../edge/routes/jobs/masking.ts'
import { tasks } from '../../tasks/index.ts'

describe('masking', () => {
  test('keys with secret names are masked, at any depth and with any value', () => {
    assert.deepEqual(
      maskSecrets({
        password: 'p',
        sealedPassword: 'p',
        API_KEY: 'k',
        'x-token': 't',
        nested: [{ deeper: { clientSecret: { id: 1 }, Authorization: ['Bearer x'] } }],
      }),
      {
        password: '***',
        sealedPassword: '***',
        API_KEY: '***',
        'x-token': '***',
        nested: [{ deeper: { clientSecret: '***', Authorization: '***' } }],
      },
    )
  })

  test('keys that only contain such a word stay, and so do absent secrets', () => {
    const value = {
      max_tokens: 5,
      keyed: true,
      key_points: 1,
      tokens: [1],
      passwordless: 'x',
      monkey: 'y',
      token: null,
    }
    assert.deepEqual(maskSecrets(value), value)
  })

  test('paths are masked exactly, also through arrays', () => {
    const value = { url: 'a', inner: { url: 'b', urls: [{ url: 'c', n: 1 }, { url: 'd' }] } }
    assert.deepEqual(maskSecrets(value, ['inner.url', 'inner.urls.url', 'not.there']), {
      url: 'a',
      inner: { url: '***', urls: [{ url: '***', n: 1 }, { url: '***' }] },
    })
  })

  test('the input is not changed, and other values are returned as they are', () => {
    const value = { token: 'x' }
    maskSecrets(value)
    assert.deepEqual(value, { token: 'x' })
    for (const plain of ['text', 5, null, true, []]) assert.deepEqual(maskSecrets(plain), plain)
  })
})

describe('tasks', () => {
  /** Returns the names of all fields of a schema, at any depth. */
  const namesOf = (schema: z.ZodType): string[] => {
    const names: string[] = []
    JSON.stringify(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }), (key, value) => {
      if (key === 'properties') names.push(...Object.keys(value as object))
      return value
    })
    return names
  }
  test('no field with a secret name is shown', () => {
    let found = 0
    for (const task of tasks)
      for (const name of [task.payload, task.result].flatMap((schema) => namesOf(schema as z.ZodType))) {
        if (!/passw|token(?!s)|secret|credential|authori|sealed|api_?key/i.test(name)) continue
        found++
        assert.deepEqual(
          maskSecrets({ [name]: 'x' }, task.secrets),
          { [name]: '***' },
          `${task.name}: ${name}`,
        )
      }
    assert.ok(found > 0)
  })

  test("each declared secret is a field of its task's payload or result", () => {
    for (const { name, payload, result, secrets = [] } of tasks) {
      const names = new Set([payload, result].flatMap((schema) => namesOf(schema as z.ZodType)))
      for (const path of secrets) assert.ok(names.has(path.split('.').at(-1)!), `${name}: ${path}`)
    }
  })
})
