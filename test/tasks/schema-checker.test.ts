import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createSchemaChecker } from '../../tasks/worker-queues/schema-checker.ts'

const checker = createSchemaChecker()
// Long enough for a process to start on a busy machine.
const impatient = createSchemaChecker(2_000)
after(() => {
  checker.close()
  impatient.close()
})

const SLOW_VALUE = JSON.stringify(`${'a'.repeat(50)}!`)
const EVIL_PATTERN = { type: 'string', pattern: '^(a+)+$' }

/** A schema with 2^30 paths through its alternatives. */
function createEvilNesting(): object {
  const $defs: Record<string, object> = { a30: { type: 'string' } }
  for (let n = 0; n < 30; n++) {
    const next = { $ref: `#/$defs/a${n + 1}` }
    $defs[`a${n}`] = { anyOf: [next, next] }
  }
  return { $defs, $ref: '#/$defs/a0' }
}

test('values are checked in their order, with the first problem of each', async () => {
  const schema = { type: 'object', required: ['a'], properties: { 'x/y~z': { items: { type: 'integer' } } } }
  const values = ['{"a": 1}', '{}', '{"a": 1, "x/y~z": [1, "2"]}', '[]']
  assert.deepEqual(await checker.check(1, schema, values), [
    null,
    { path: ['a'], message: "must have required property 'a'" },
    { path: ['x/y~z', 1], message: 'must be integer' },
    { path: [], message: 'must be object' },
  ])
  assert.deepEqual(await checker.check(1, false, ['1']), [{ path: [], message: 'boolean schema is false' }])
  assert.deepEqual(await checker.check(1, {}, []), [])
})

test('schemas do not see each other, even with the same $id', async () => {
  const one = { $id: 'https://example.com/a', type: 'integer' }
  assert.deepEqual(await checker.check(1, one, ['1']), [null])
  assert.deepEqual(await checker.check(2, { ...one, type: 'string' }, ['"1"']), [null])
  assert.match((await checker.compile(2, { $ref: 'https://example.com/a' })) ?? '', /can't resolve reference/)
})

test('a schema that takes too long is stopped, and others go on meanwhile', async () => {
  const slow = impatient.check(1, EVIL_PATTERN, [SLOW_VALUE, '"aaa"'])
  assert.deepEqual(await impatient.check(2, { type: 'integer' }, ['1']), [null])
  const problem = { path: [], message: 'takes too long or too much memory to check' }
  assert.deepEqual(await slow, [problem, problem])
  assert.deepEqual(await impatient.check(1, createEvilNesting(), ['1']), [problem])
  assert.deepEqual(await impatient.check(1, EVIL_PATTERN, ['"aaa"']), [null])
})
