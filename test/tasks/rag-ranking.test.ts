import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { FileScores, type IndexedTerms, searchTerms } from '../../tasks/rag/bm25.ts'
import { fuseRanks } from '../../tasks/rag/fuse.ts'
import { parsePostings, visitPostings } from '../../tasks/rag/postings.ts'
import { buildQuery, splitQuery } from '../../tasks/rag/query.ts'
import { selectTop } from '../../tasks/rag/top.ts'
import { Vectors } from '../../tasks/rag/vectors.ts'
import { scoreRankings } from '../perf/trec.ts'
import { createRunOptions } from '../runs.ts'

/** Each part of ranking agrees with its simplest implementation. */

const toChunkIds = (hits: readonly { chunk: number }[]): number[] => hits.map(({ chunk }) => chunk)

/** The numbers of the words that the tests use. `the` and `of` are common. */
const numbers = new Map<string, number>()
const COMMON_WORDS = new Set(['the', 'of'])
function toTerms(text: string): { terms: number[]; common_terms: number[] } {
  const words = text.toLowerCase().match(/\w+/g) ?? []
  const numberOf = (word: string): number => {
    const number = numbers.get(word) ?? numbers.size + 1
    numbers.set(word, number)
    return number
  }
  const isCommon = (word: string): boolean => COMMON_WORDS.has(word)
  return {
    terms: words.filter((word) => !isCommon(word)).map(numberOf),
    common_terms: [...new Set(words.filter(isCommon).map(numberOf))],
  }
}

/** Returns a posting as the database stores it. */
function packPosting(chunk: number, count: number, length: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt16BE(chunk)
  bytes[2] = count
  bytes[3] = Math.round(16 * Math.log2(length + 1))
  return bytes
}

/** Indexes texts in memory. Each text is a chunk; `files` has their files, by default one for each. */
function indexTexts(texts: readonly string[], files: readonly number[] = [...texts.keys()]): IndexedTerms {
  const chunks = texts.map(toTerms)
  const lengths = new Uint32Array(Math.max(0, ...files.map((file) => file + 2)))
  for (const [chunk, file] of files.entries()) lengths[file + 1]! += chunks[chunk]!.terms.length
  const isAlone = (file: number): boolean => files.filter((one) => one === file).length === 1
  const fileOf = Uint32Array.from(files, (file) => (isAlone(file) ? 0 : file + 1))
  const count = (chunk: number, term: number): number =>
    chunks[chunk]!.terms.filter((one) => one === term).length ||
    Number(chunks[chunk]!.common_terms.includes(term))
  const chunksOf = (term: number): number[] => [...chunks.keys()].filter((chunk) => count(chunk, term) > 0)
  return {
    chunkCount: texts.length,
    averageLength: chunks.reduce((sum, { terms }) => sum + terms.length, 0) / texts.length,
    files: { fileCount: new Set(files).size, fileOf, lengths },
    readPostings: async (terms) =>
      parsePostings(
        terms
          .filter((term) => chunksOf(term).length > 0)
          .map((term) => {
            const postings = chunksOf(term).map((chunk) =>
              packPosting(chunk, count(chunk, term), chunks[chunk]!.terms.length),
            )
            return `${term} 0 ${Buffer.concat(postings).toString('base64')}`
          }),
      ),
    readChunkTerms: async (wanted) =>
      [...new Set(wanted.flatMap((chunk) => chunks[chunk]!.terms))].map((term) => ({
        term,
        chunkCount: chunksOf(term).length,
        chunks: wanted.flatMap((chunk) => Array<number>(count(chunk, term)).fill(chunk)),
      })),
    findPhrases: async (wanted, phrases) =>
      wanted.filter((chunk) => {
        const sequence = `,${chunks[chunk]!.terms.join(',')},`
        return phrases.every((sequences) =>
          sequences.some((terms) => sequence.includes(`,${terms.join(',')},`)),
        )
      }),
  }
}

const search = async (index: IndexedTerms, text: string, allowed: Uint8Array | null = null) =>
  searchTerms(index, buildQuery(splitQuery(text).map((part) => [toTerms(part)])), 10, allowed)

describe('postings', () => {
  test('are those of all blocks', () => {
    const rows = [
      `7 0 ${Buffer.concat([packPosting(3, 2, 10), packPosting(8191, 1, 0)]).toString('base64')}`,
      `-9 1 ${packPosting(0, 255, 500).toString('base64')}`,
      `7 2 ${packPosting(5, 1, 1).toString('base64').replace(/(..)/, '$1\n')}`,
    ]
    const postings = parsePostings(rows)
    const found = (term: number) => {
      const all: number[][] = []
      visitPostings(postings.get(term)!, (...posting) => all.push(posting))
      return all
    }
    assert.deepEqual([...postings.keys()], [7, -9])
    assert.deepEqual(found(7), [
      [3, 2, 55],
      [8191, 1, 0],
      [2 * 8192 + 5, 1, 16],
    ])
    assert.deepEqual(found(-9), [[8192, 255, 143]])
    assert.deepEqual([postings.get(7)!.chunkCount, postings.get(-9)!.chunkCount], [3, 1])
  })
})

describe('the best of many', () => {
  test('are the same as by sorting', () => {
    const score = fc.oneof(fc.integer({ min: -2, max: 5 }), fc.constant(Number.NaN))
    fc.assert(
      fc.property(fc.array(score), fc.nat(12), (scores, max) => {
        const expected = scores
          .map((value, chunk) => ({ chunk, score: value }))
          .filter((hit) => hit.score > 0)
          .sort((a, b) => b.score - a.score || a.chunk - b.chunk)
          .slice(0, max)
        assert.deepEqual(selectTop(Float64Array.from(scores), max), expected)
      }),
      createRunOptions(),
    )
  })
})

describe('words', () => {
  const texts = [
    'red fox jumps',
    'red red fox',
    'blue whale sings long songs of the deep',
    'fox',
    'grey wolf',
  ]
  const index = indexTexts(texts)
  const find = async (text: string, allowed: Uint8Array | null = null): Promise<number[]> =>
    toChunkIds(await search(index, text, allowed))

  test('are weighted by rarity, frequency and length of the chunk', async () => {
    assert.equal((await find('whale'))[0], 2)
    assert.equal((await find('red'))[0], 1, 'twice beats once')
    assert.equal((await find('fox'))[0], 3, 'short beats long')
    assert.deepEqual(await find('absent'), [])
    assert.deepEqual(await find(''), [])
  })

  test('have scores between 0 and 1, comparable with each other', async () => {
    for (const { score } of await search(index, 'red fox whale wolf')) assert.ok(score > 0 && score < 1)
  })

  test('that are common count only if nothing else is asked', async () => {
    assert.deepEqual(await find('the'), [2])
    assert.deepEqual(await find('the wolf'), [4])
    assert.deepEqual(await find('the absent'), [])
  })

  test('in several languages are those of each', async () => {
    const query = buildQuery([[toTerms('fox'), toTerms('whale whale')]])
    assert.deepEqual([...query.terms.values()], [1, 2])
    assert.deepEqual(toChunkIds(await searchTerms(index, query, 10, null)).sort(), [0, 1, 2, 3])
  })

  test('are searched only in allowed chunks', async () => {
    assert.deepEqual(await find('fox', Uint8Array.of(1, 0, 1, 0, 1)), [0])
    assert.deepEqual(await find('fox', Uint8Array.of(1)), [0])
    assert.deepEqual(await find('fox', new Uint8Array(5)), [])
  })

  test('in a phrase are adjacent', async () => {
    assert.deepEqual((await find('"red fox"')).sort(), [0, 1])
    assert.deepEqual(await find('"fox jumps" red'), [0])
    assert.deepEqual((await find('“fox red”')).length, 3, 'nowhere: the words alone')
    assert.deepEqual(await find('"red fox"', Uint8Array.of(0, 1, 0, 0, 0)), [1])
    assert.deepEqual(await find('"songs of the deep"'), [2], 'but for common words')
    assert.deepEqual((await find('"red fox" "whale sings"')).length, 4, 'not all in one chunk')
  })

  test('in a phrase of more than eight are adjacent in the first eight', async () => {
    assert.deepEqual((await find('"red fox"'.repeat(8).concat('"fox jumps"'))).sort(), [0, 1])
    assert.equal(splitQuery('"xx yy"'.repeat(500)).length, 9)
  })

  test('from the best chunks find what the query does not name', async () => {
    const others = Array.from({ length: 9 }, (_, i) => `filler${i}`)
    const lending = indexTexts(['car engine motor', 'car engine motor', 'motor repair', ...others])
    assert.deepEqual(toChunkIds(await search(lending, 'car')), [0, 1, 2])
  })
})

describe('files of several chunks', () => {
  const texts = ['red apple', 'blue whale', 'red apple', 'green tree', 'grey wolf', 'grey wolf']

  test('lend their chunks a share of their score', async () => {
    const index = indexTexts(texts, [0, 0, 1, 1, 2, 2])
    const hits = await search(index, 'red whale')
    const scoreOf = (wanted: number): number => hits.find(({ chunk }) => chunk === wanted)?.score ?? 0
    assert.ok(scoreOf(0) > scoreOf(2) * 1.1, 'the file of 0 also has the whale')
    assert.ok(hits.every(({ score }) => score > 0 && score < 1))
    assert.equal(scoreOf(3), 0, 'without any of the words')
  })

  test('of which only some chunks are allowed', async () => {
    const index = indexTexts(texts, [0, 0, 1, 1, 2, 2])
    const [hit, ...more] = await search(index, 'red whale', Uint8Array.of(1))
    assert.deepEqual([hit!.chunk, more], [0, []])
  })

  test('have the scores of their whole texts', async () => {
    const word = fc.constantFrom('red', 'blue', 'fox', 'wolf', 'tree', 'the')
    const file = fc.array(fc.array(word, { minLength: 1, maxLength: 6 }), { minLength: 2, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(fc.array(file, { maxLength: 4 }), async (files) => {
        // A search without a found term returns before it scores, so one file has a term of the query.
        const contents = [[['red'], ['blue']], ...files]
        const chunks = contents.flatMap((all, n) => all.map((words) => ({ text: words.join(' '), n })))
        const cut = indexTexts(
          chunks.map(({ text }) => text),
          chunks.map(({ n }) => n),
        )
        // Each whole text has an empty second chunk, so it is a file of several chunks, too.
        const whole = indexTexts(
          contents.flatMap((all) => [all.flat().join(' '), '']),
          contents.flatMap((_, n) => [n, n]),
        )
        const [scores, expected] = await Promise.all([cut, whole].map(scoreFiles))
        // Terms are added in another order, so the sums differ in their last digits.
        for (const [i, { n }] of chunks.entries())
          assert.ok(Math.abs(scores!.addShare(i, 0) - expected!.addShare(2 * n, 0)) < 1e-6)
      }),
      createRunOptions(),
    )
  })

  /** Scores the files for a query of three words. */
  async function scoreFiles(index: IndexedTerms): Promise<FileScores> {
    const scores = new FileScores(index)
    for (const [n, term] of toTerms('red fox tree').terms.entries()) {
      const postings = (await index.readPostings([term])).get(term)
      if (postings === undefined) continue
      visitPostings(postings, (chunk, count) => scores.count(chunk, count))
      scores.addTerm(postings.chunkCount, 1 / (n + 1))
    }
    return scores
  }
})

describe('vectors', () => {
  const unit = (floats: readonly number[]): Float32Array => {
    const length = Math.hypot(...floats)
    return Float32Array.from(floats, (value) => value / length)
  }
  // Returns numbers that look random but depend only on the arguments.
  const createVector = (row: number, size: number): Float32Array =>
    unit(Array.from({ length: size }, (_, i) => Math.sin((row + 1) * 12.9898 + i * 78.233)))

  test('are compared by cosine, whatever their length', () => {
    for (const size of [1, 3, 8, 17, 384]) {
      const rows = Array.from({ length: 50 }, (_, row) => ({
        chunk: row * 2,
        floats: createVector(row, size),
      }))
      const vectors = new Vectors(size, rows)
      const wanted = createVector(20, size)
      const expected = rows
        .map(({ chunk, floats }) => ({
          chunk,
          score: floats.reduce((sum, value, i) => sum + value * wanted[i]!, 0),
        }))
        .sort((a, b) => b.score - a.score || a.chunk - b.chunk)
      const found = vectors.findNearest(wanted, 50, null)
      for (const [i, { score }] of found.entries()) assert.ok(Math.abs(score - expected[i]!.score) < 1e-5)
      if (size > 3) assert.deepEqual(toChunkIds(found).slice(0, 10), toChunkIds(expected).slice(0, 10))
      assert.equal(found.length, 50)
    }
  })

  test('that are not allowed are ignored', () => {
    const rows = Array.from({ length: 9 }, (_, chunk) => ({ chunk, floats: createVector(chunk, 8) }))
    const allowed = Uint8Array.from(rows, ({ chunk }) => (chunk % 3 === 0 ? 1 : 0))
    const found = new Vectors(8, rows).findNearest(createVector(1, 8), 9, allowed)
    assert.deepEqual(toChunkIds(found).sort(), [0, 3, 6])
  })

  test('of several parts are one list', () => {
    const size = 8000
    const rows = Array.from({ length: 2500 }, (_, chunk) => ({ chunk, floats: new Float32Array(size) }))
    for (const { chunk, floats } of rows) floats[chunk] = 1
    const vectors = new Vectors(size, rows)
    const wanted = new Float32Array(size)
    wanted[2400] = 1
    assert.deepEqual(vectors.findNearest(wanted, 1, null), [{ chunk: 2400, score: 1 }])
  })
})

describe('fusion', () => {
  test('ranks results of both lists above those of one', () => {
    const hit = (chunk: number) => ({ chunk, score: 0.5 })
    const joined = fuseRanks([hit(1), hit(2), hit(3)], [hit(2), hit(4)], 10)
    assert.deepEqual(toChunkIds(joined), [2, 1, 4, 3])
    assert.deepEqual([joined[0]!.lexical, joined[0]!.vector], [2, 1])
    assert.deepEqual([joined[2]!.lexical, joined[2]!.vector], [null, 2])
    assert.equal(fuseRanks([hit(7)], [hit(7)], 1)[0]!.score, 1)
    assert.ok(joined.every(({ score }) => score > 0 && score <= 1))
    assert.deepEqual(toChunkIds(fuseRanks([hit(1), hit(2)], null, 1)), [1])
  })
})

describe('scores of rankings', () => {
  test('equal those of trec_eval', () => {
    const judgements = new Map([
      [
        '1',
        new Map([
          ['a', 1],
          ['b', 0],
          ['c', 2],
          ['z', 1],
        ]),
      ],
      ['2', new Map([['x', 1]])],
    ])
    const runs = new Map([
      [
        '1',
        [
          { document: 'a', score: 3 },
          { document: 'b', score: 2 },
          { document: 'c', score: 1 },
        ],
      ],
      // Documents with equal scores are in descending order of their names.
      [
        '2',
        [
          { document: 'w', score: 1 },
          { document: 'x', score: 1 },
        ],
      ],
      ['3', [{ document: 'a', score: 1 }]],
    ])
    const { map, ndcg10, questions } = scoreRankings(runs, judgements)
    assert.equal(questions, 2)
    const [ap1, ap2] = [(1 / 1 + 2 / 3) / 3, 1]
    const ideal = 2 + 1 / Math.log2(3) + 1 / 2
    const [n1, n2] = [(1 + 2 / 2) / ideal, 1]
    assert.ok(Math.abs(map - (ap1 + ap2) / 2) < 1e-12)
    assert.ok(Math.abs(ndcg10 - (n1 + n2) / 2) < 1e-12)
  })
})
