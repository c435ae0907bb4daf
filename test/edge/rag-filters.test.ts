import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startRag } from './rag-help.ts'

/** Tests filters on the metadata of results, and the metadata that index requests add. */

const { api, write, index, search, query } = await startRag()

const CITIES = {
  'cities/oslo.md': {
    country: 'norway',
    population: 709,
    founded: '1048-01-01',
    tags: ['capital', 'harbour'],
  },
  'cities/bergen.md': { country: 'norway', population: 291.5, tags: ['harbour'], twin: 'oslo' },
  'cities/delhi.md': {
    country: 'India',
    population: 32_000,
    founded: '1052-01-01',
    tags: ['capital'],
    twin: null,
  },
  'cities/plain.md': { population: '500', tags: [], isOpen: true, codes: [1, 7] },
} as const
write(Object.fromEntries(Object.keys(CITIES).map((path) => [path, `# City\n\nA town of ${path}.\n`])))
const fileMetadata = Object.fromEntries(
  Object.entries(CITIES).map(([path, metadata]) => [path.replace('cities/', ''), metadata]),
)
const indexed = await index({ path: 'cities', collection_name: 'cities', file_metadata: fileMetadata })

const findCities = async (filter_metadata: unknown, more: object = {}): Promise<string> => {
  const answer = await search('town', { collection_name: 'cities', filter_metadata, ...more })
  assert.equal(answer.status, 200, answer.text)
  return answer.json.results
    .map(({ metadata }: { metadata: { file_name: string } }) => metadata.file_name.replace('.md', ''))
    .sort()
    .join(' ')
}
const testFilters = (cases: Readonly<Record<string, readonly [filter: object, found: string]>>): void => {
  for (const [name, [filter, found]] of Object.entries(cases))
    test(name, async () => assert.equal(await findCities(filter), found))
}

test('the metadata of files are part of results', async () => {
  assert.equal(indexed.status, 200, indexed.text)
  const { json } = await search('oslo', { collection_name: 'cities', top_k: 1 })
  const { country, population, founded, tags, source } = json.results[0].metadata
  assert.deepEqual(
    { country, population, founded, tags, source },
    { ...CITIES['cities/oslo.md'], source: 'cities/oslo.md' },
  )
})

describe('a filter', () => {
  testFilters({
    'compares values': [{ country: 'norway' }, 'bergen oslo'],
    'compares values by name': [{ country: { $eq: 'norway' } }, 'bergen oslo'],
    'distinguishes capital letters': [{ country: 'india' }, ''],
    'finds null where it was set': [{ twin: null }, 'delhi'],
    'finds booleans': [{ isOpen: true }, 'plain'],
    'finds keys of chunks': [{ start_line: 1, country: 'norway' }, 'bergen oslo'],
    'finds keys of chunks or files': [{ $or: [{ chunk_index: { $gt: 0 } }, { country: 'India' }] }, 'delhi'],
    'never compares across types': [{ population: { $lt: 1000 } }, 'bergen oslo'],
    'compares texts with texts': [{ population: { $gte: '1' } }, 'plain'],
    'compares numbers as numbers': [{ population: { $gt: 291, $lte: 709 } }, 'bergen oslo'],
    'compares dates as texts': [{ founded: { $gte: '1048-01-01', $lt: '1050' } }, 'oslo'],
    'compares texts in code-point order': [{ country: { $lt: 'a' } }, 'delhi'],
    'finds values of a list': [{ country: { $in: ['India', 'norway', 7] } }, 'bergen delhi oslo'],
    'finds nothing in an empty list': [{ country: { $in: [] } }, ''],
    'finds all others': [{ country: { $nin: ['India', 'x'] } }, 'bergen oslo plain'],
    'finds differing values and missing keys': [{ country: { $ne: 'norway' } }, 'delhi plain'],
    'finds elements of lists': [{ tags: 'capital' }, 'delhi oslo'],
    'finds elements of lists in lists': [{ tags: { $in: ['capital', 'x'] } }, 'delhi oslo'],
    'excludes elements of lists': [{ tags: { $ne: 'capital' } }, 'bergen plain'],
    'compares elements of lists': [{ codes: { $gt: 6 } }, 'plain'],
    'finds lists with an element in a range': [{ codes: { $gte: 7, $lt: 8 } }, 'plain'],
    'finds no elements on both sides of a range': [{ codes: { $gt: 1, $lt: 7 } }, ''],
    'negates a range of elements': [{ codes: { $not: { $gt: 1, $lt: 7 } } }, 'bergen delhi oslo plain'],
    'joins a range and other operators': [{ codes: { $gte: 7, $eq: 1, $lte: 7 } }, 'plain'],
    'finds two elements by two conditions': [
      { $and: [{ codes: { $gt: 1 } }, { codes: { $lt: 7 } }] },
      'plain',
    ],
    'finds nothing in a range of two types': [{ population: { $gt: 1, $lt: 'a' } }, ''],
    'finds parts of texts': [{ file_name: { $contains: 'el' } }, 'delhi'],
    'takes parts literally': [{ file_name: { $contains: '.*' } }, ''],
    'finds members, but no parts of members': [{ tags: { $contains: 'capital' } }, 'delhi oslo'],
    'finds no parts of members': [{ tags: { $contains: 'cap' } }, ''],
    'finds members that are numbers': [{ codes: { $contains: 7 } }, 'plain'],
    'finds no numbers in texts': [{ population: { $contains: 5 } }, ''],
    'finds present keys': [{ twin: { $exists: true } }, 'bergen delhi'],
    'finds missing keys': [{ twin: { $exists: false } }, 'oslo plain'],
    'finds empty lists as present': [{ tags: { $exists: true }, population: '500' }, 'plain'],
    'negates a condition': [{ population: { $not: { $gt: 500 } } }, 'bergen plain'],
    'negates a part, also of a missing key': [{ twin: { $not: { $contains: 'os' } } }, 'delhi oslo plain'],
    'negates a value': [{ country: { $not: 'norway' } }, 'delhi plain'],
    'negates a filter': [{ $not: { country: 'norway', tags: 'capital' } }, 'bergen delhi plain'],
    'joins filters': [{ $and: [{ country: 'norway' }, { $not: { tags: 'capital' } }] }, 'bergen'],
    'chooses filters': [{ $or: [{ country: 'India' }, { population: '500' }], tags: 'capital' }, 'delhi'],
    'may be empty': [{ $and: [{}] }, 'bergen delhi oslo plain'],
    'may have odd keys': [{ 'a "b" \\ $.c': { $ne: '\\"' } }, 'bergen delhi oslo plain'],
    'may have odd values': [{ country: { $in: ['"', '\\', '$v0', '\u2028'] } }, ''],
    'may have odd parts': [{ country: { $contains: '"\\\n\u0001' } }, ''],
    'reads only own keys': [{ constructor: { $exists: true } }, ''],
  })

  test('is a condition even with the key of a prototype', async () => {
    const json = '{"query":"town","collection_name":"cities","filter_metadata":{"__proto__":"x"}}'
    const answer = await api.post('/rag/search', {
      body: json,
      headers: { 'content-type': 'application/json' },
    })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.json.result_count, 0)
  })

  const chain = (depth: number): object => (depth === 0 ? { a: 1 } : { $not: chain(depth - 1) })
  const or = (count: number, filter: object = { a: 1 }): object => ({ $or: Array(count).fill(filter) })
  const many = (count: number): number[] => Array.from({ length: count }, (_, i) => i)
  for (const [name, filter, ...loc] of [
    ['an unknown operator', { a: { $near: 1 } }, 'a', '$near'],
    ['a field within a condition', { a: { b: 1 } }, 'a', 'b'],
    ['an unknown operator of filters', { $nor: [{ a: 1 }] }, '$nor'],
    ['an operator of keys without a key', { $in: ['a'] }, '$in'],
    ['a list without an operator', { a: ['b'] }, 'a'],
    ['no operator', { a: {} }, 'a'],
    ['no list', { a: { $in: 'b' } }, 'a', '$in'],
    ['a list of lists', { a: { $in: [['b']] } }, 'a', '$in'],
    ['a list of too many values', { a: { $in: many(1001) } }, 'a', '$in'],
    ['too many values', { a: { $in: many(1000) }, b: { $nin: many(1000) }, c: { $in: [1] } }, 'c', '$in'],
    ['an object as a value', { a: { $eq: {} } }, 'a', '$eq'],
    ['a range of booleans', { a: { $gt: true } }, 'a', '$gt'],
    ['a range to null', { a: { $lte: null } }, 'a', '$lte'],
    ['a part that is null', { a: { $contains: null } }, 'a', '$contains'],
    ['a part that is too long', { a: { $contains: 'b'.repeat(257) } }, 'a', '$contains'],
    ['existence as a text', { a: { $exists: 'yes' } }, 'a', '$exists'],
    ['filters that are no list', { $and: { a: 1 } }, '$and'],
    ['no filters', { $or: [] }, '$or'],
    ['a filter that is a value', { $or: [{ a: 1 }, 2] }, '$or', 1],
    ['a negated value', { $not: 'a' }, '$not'],
    ['a negated list', { a: { $not: ['b'] } }, 'a', '$not'],
    ['a filter that is too deep', chain(6), ...Array(6).fill('$not')],
    ['too many conditions', or(101), '$or', 100, 'a'],
    ['too many filters', or(101, {}), '$or', 100],
    ['too many parts', or(21, { a: { $contains: 'b' } }), '$or', 20, 'a', '$contains'],
    ['a key that is too long', { ['k'.repeat(101)]: 1 }, 'k'.repeat(101)],
    ['a value that is too long', { a: 'b'.repeat(4097) }, 'a'],
    ['no object', 'a'],
    ['a list', [{ a: 1 }]],
  ] as readonly (readonly [string, unknown, ...(string | number)[]])[])
    test(`is rejected with ${name}`, async () => {
      const answer = await search('town', { collection_name: 'cities', filter_metadata: filter })
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(answer.json.errors[0].loc, ['body', 'filter_metadata', ...loc])
    })

  for (const [operator, operand] of [
    ['$eq', '1e999'],
    ['$ne', '-1e999'],
    ['$gt', '1e999'],
    ['$contains', '1e999'],
    ['$in', '[1, 1e999]'],
  ] as const)
    test(`is rejected with a number beyond all limits for ${operator}`, async () => {
      const filter = `{"population":{"${operator}":${operand}}}`
      const answer = await api.post('/rag/search', {
        body: `{"query":"town","collection_name":"cities","filter_metadata":${filter}}`,
        headers: { 'content-type': 'application/json' },
      })
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(answer.json.errors[0].loc, ['body', 'filter_metadata', 'population', operator])
    })

  test('is accepted at its limits', async () => {
    assert.equal(await findCities(chain(5)), 'bergen delhi oslo plain')
    assert.equal(await findCities({ $or: [...Array(99).fill({ a: 1 }), { country: 'India' }] }), 'delhi')
    assert.equal(await findCities(or(20, { file_name: { $contains: 'oslo' } })), 'oslo')
    assert.equal(await findCities({ population: { $in: many(1000) } }), 'oslo')
  })

  test('names each problem', async () => {
    const answer = await search('town', {
      collection_name: 'cities',
      filter_metadata: { a: { $near: 1 }, b: { $in: 2 } },
    })
    assert.deepEqual(
      answer.json.errors.map(({ msg }: { msg: string }) => msg),
      [
        'is no operator; the operators are $eq, $ne, $in, $nin, $gt, $gte, $lt, $lte, $contains, $exists, $not',
        'must be a list',
      ],
    )
  })

  test('is applied before the ranking', async () => {
    write(
      Object.fromEntries(
        Array.from({ length: 300 }, (_, i) => [`many/${i}.txt`, 'fog '.repeat(1 + (i % 7))]),
      ),
    )
    write({ 'many/last.txt': 'Nothing but some fog, far away, behind the hills and mountains of the north.' })
    await index({ path: 'many', collection_name: 'many', file_metadata: { 'last.txt': { rare: 'yes' } } })
    const { json } = await search('fog', {
      collection_name: 'many',
      top_k: 1,
      filter_metadata: { rare: { $in: ['yes'] } },
    })
    assert.equal(json.results[0].metadata.source, 'many/last.txt')
  })
})

describe('metadata of an index request', () => {
  const body = { path: 'given', collection_name: 'given' }
  write({
    'given/a.md': 'apple alpha',
    'given/b.txt': 'apple beta',
    'given/deep/c.md': 'apple gamma',
    'given/deep/[d].md': 'apple delta',
  })
  const findGiven = async (filter: object): Promise<unknown[]> => {
    const { json } = await search('apple', { collection_name: 'given', filter_metadata: filter })
    return json.results.map(({ metadata }: { metadata: { file_name: string } }) => metadata.file_name).sort()
  }

  test('are those of all files, then of patterns in order', async () => {
    const answer = await index({
      ...body,
      metadata: { team: 'red', level: 1 },
      file_metadata: { '*.md': { level: 2 }, 'deep/': { level: 3, deep: true }, 'deep/[d].md': { level: 4 } },
    })
    assert.equal(answer.status, 200, answer.text)
    assert.equal((await findGiven({ team: 'red' })).length, 4)
    assert.deepEqual(await findGiven({ level: 1 }), ['b.txt'])
    assert.deepEqual(await findGiven({ level: 2 }), ['a.md'])
    assert.deepEqual(await findGiven({ level: 3 }), ['c.md'])
    assert.deepEqual(await findGiven({ level: 4, deep: true }), ['[d].md'])
    const { json } = await api.get('/rag/collections/given')
    assert.deepEqual(json.metadata.metadata, { team: 'red', level: 1 })
    assert.deepEqual(json.metadata.file_metadata, [
      ['*.md', { level: 2 }],
      ['deep/', { level: 3, deep: true }],
      ['deep/[d].md', { level: 4 }],
    ])
  })

  test('of patterns apply in the order of the request, also if a later one is shorter', async () => {
    const json = {
      ...body,
      file_metadata: {
        '**/*.md': { level: 1 },
        'b.txt': { level: 1 },
        '*.*': { level: 2 },
        'a.md': { level: 3 },
      },
    }
    assert.equal((await index(json)).status, 200)
    assert.deepEqual(await findGiven({ level: 3 }), ['a.md'])
    assert.deepEqual(await findGiven({ level: 2 }), ['[d].md', 'b.txt', 'c.md'])
  })

  test('change without reading the files again', async () => {
    const rows = () => query(`select id::int from rag_file where source like 'given/%' order by id`)
    const before = await rows()
    const answer = await index({ ...body, metadata: { team: 'blue' } })
    assert.deepEqual([answer.json.documents_added, answer.json.documents_unchanged], [0, 4])
    assert.deepEqual(await rows(), before)
    assert.equal((await findGiven({ team: 'blue' })).length, 4)
    assert.equal((await findGiven({ level: { $exists: true } })).length, 0)
  })

  test('stay for files outside the path', async () => {
    await index({ path: 'given/deep', collection_name: 'given', metadata: { team: 'green' } })
    assert.deepEqual(await findGiven({ team: 'blue' }), ['a.md', 'b.txt'])
    await index({ path: 'given/a.md', collection_name: 'given', file_metadata: { 'a.md': { team: 'grey' } } })
    assert.deepEqual(await findGiven({ team: 'grey' }), ['a.md'])
  })

  const keys = (count: number): object =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 1]))
  for (const [name, more, ...loc] of [
    ['a reserved key', { metadata: { source: 'x' } }, 'metadata', 'source'],
    ['a key that begins with $', { metadata: { $set: 1 } }, 'metadata', '$set'],
    ['an empty key', { metadata: { '': 1 } }, 'metadata', ''],
    ['a key that is too long', { metadata: { ['k'.repeat(101)]: 1 } }, 'metadata', 'k'.repeat(101)],
    ['too many keys', { metadata: keys(51) }, 'metadata'],
    ['too many bytes', { metadata: { a: 'ä'.repeat(2048) } }, 'metadata'],
    ['an object as a value', { metadata: { a: { b: 1 } } }, 'metadata', 'a'],
    ['a list of lists', { metadata: { a: [[1]] } }, 'metadata', 'a'],
    ['too many values', { metadata: { a: Array(101).fill(1) } }, 'metadata', 'a'],
    ['a list', { metadata: ['a'] }, 'metadata'],
    ['a reserved key of files', { file_metadata: { '*.md': { page: 1 } } }, 'file_metadata', '*.md', 'page'],
    ['an empty pattern', { file_metadata: { '': {} } }, 'file_metadata', ''],
    ['a pattern that is a number', { file_metadata: { 2024: {} } }, 'file_metadata', '2024'],
    ['metadata that are a value', { file_metadata: { 'a.md': 'x' } }, 'file_metadata', 'a.md'],
    [
      'too many patterns',
      { file_metadata: Object.fromEntries(Object.keys(keys(1001)).map((k) => [k, {}])) },
      'file_metadata',
    ],
  ] as readonly (readonly [string, object, ...string[]])[])
    test(`are rejected with ${name}`, async () => {
      const answer = await index({ ...body, ...more })
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(answer.json.errors[0].loc, ['body', ...loc])
    })

  test('are refused with an invalid pattern, or if those of a file are too large together', async () => {
    const invalid = await index({ ...body, file_metadata: { '*a*a*a*a*a': { x: 1 } } })
    assert.deepEqual([invalid.status, invalid.json.code], [400, 'rag.metadata_pattern'])
    const large = { metadata: { x: 'x'.repeat(3000) }, file_metadata: { 'b.txt': { y: 'y'.repeat(3000) } } }
    const answer = await index({ ...body, ...large })
    assert.deepEqual(
      [answer.status, answer.json],
      [400, { detail: 'The metadata of b.txt would exceed 4096 bytes', code: 'rag.metadata_too_large' }],
    )
  })
})
