import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { parseQuery, searchTerms } from '../../tasks/rag/bm25.ts'
import { fuseRanks } from '../../tasks/rag/fuse.ts'
import { Postings } from '../../tasks/rag/postings.ts'
import { selectTop } from '../../tasks/rag/top.ts'
import { Vectors } from '../../tasks/rag/vectors.ts'
import { hashTerm, tokenize } from '../../tasks/rag/words.ts'
import { scoreRankings } from '../perf/trec.ts'
import { createRunOptions } from '../runs.ts'

/** Each part of ranking agrees with its simplest implementation. */

const packTerms = (text: string): Uint32Array => Uint32Array.from(tokenize(text), hashTerm)
const toChunkIds = (hits: readonly { chunk: number }[]): number[] => hits.map(({ chunk }) => chunk)

describe('postings', () => {
  test('have the chunks and counts of each term', () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.integer({ min: 1, max: 9 }))), (chunks) => {
        const postings = new Postings(chunks.map((terms) => Uint32Array.from(terms)))
        for (let hash = 1; hash <= 9; hash++) {
          const expected = chunks.flatMap((terms, chunk) => {
            const count = terms.filter((term) => term === hash).length
            return count === 0 ? [] : [[chunk, count]]
          })
          const term = postings.numberOf(hash)
          if (term === undefined) {
            assert.deepEqual(expected, [])
            continue
          }
          const [from, to] = [postings.chunkOffsets[term]!, postings.chunkOffsets[term + 1]!]
          const found = [...postings.chunks.slice(from, to)].map((chunk, i) => [
            chunk,
            postings.counts[from + i],
          ])
          assert.deepEqual(found, expected)
          assert.equal(postings.countChunks(term), expected.length)
        }
      }),
      createRunOptions(),
    )
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
  const postings = new Postings(texts.map(packTerms))
  const search = (text: string, allowed: Uint8Array | null = null): number[] =>
    toChunkIds(searchTerms(postings, parseQuery(text), 10, allowed))

  test('are weighted by rarity, frequency and length of the chunk', () => {
    assert.equal(search('whale')[0], 2)
    assert.equal(search('red')[0], 1, 'twice beats once')
    assert.equal(search('fox')[0], 3, 'short beats long')
    assert.deepEqual(search('absent'), [])
    assert.deepEqual(search(''), [])
  })

  test('have scores between 0 and 1, comparable with each other', () => {
    for (const { score } of searchTerms(postings, parseQuery('red fox whale wolf'), 10, null))
      assert.ok(score > 0 && score < 1)
  })

  test('are searched only in allowed chunks', () => {
    assert.deepEqual(search('fox', Uint8Array.of(1, 0, 1, 0, 1)), [0])
    assert.deepEqual(search('fox', new Uint8Array(5)), [])
  })

  test('in a phrase are adjacent', () => {
    assert.deepEqual(search('"red fox"').sort(), [0, 1])
    assert.deepEqual(search('"fox jumps" red'), [0])
    assert.deepEqual(search('“fox red”').length, 3, 'nowhere: the words alone')
    assert.deepEqual(search('"red fox"', Uint8Array.of(0, 1, 0, 0, 0)), [1])
  })

  test('in a phrase of more than eight are adjacent in the first eight', () => {
    assert.deepEqual(search('"red fox"'.repeat(8).concat('"fox jumps"')).sort(), [0, 1])
    assert.equal(parseQuery('"xx yy"'.repeat(500)).phrases.length, 8)
  })

  test('from the best chunks find what the query does not name', () => {
    const others = Array.from({ length: 9 }, (_, i) => `filler${i}`)
    const texts = ['car engine motor', 'car engine motor', 'motor repair', ...others]
    const lending = new Postings(texts.map(packTerms))
    const found = toChunkIds(searchTerms(lending, parseQuery('car'), 10, null))
    assert.deepEqual(found, [0, 1, 2])
  })

  test('are taken from any text', () => {
    assert.deepEqual(tokenize('The Foxes’ dens'), ['fox', 'den'])
    assert.deepEqual(tokenize('readFileSync HTTPServer2 snake_case'), [
      'read',
      'file',
      'sync',
      'readfilesync',
      'http',
      'server2',
      'httpserver2',
      'snake',
      'case',
    ])
    assert.deepEqual(tokenize('Ärger Café ﬁne'), ['arger', 'cafe', 'fine'])
    assert.deepEqual(tokenize('東京都 ok'), ['東京', '京都', 'ok'])
    assert.deepEqual(tokenize('x'.repeat(65)), [], 'data is no word')
  })
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
