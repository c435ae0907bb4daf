import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { startRag } from './rag-help.ts'

/** Tests the routes for indexing, search and deletion. */

const { api, write, index, search, query, root } = await startRag()

write({
  'notes/tea.md':
    '# Drinks\n\n## Tea\n\nGreen tea is steeped at eighty degrees for two minutes.\n\n## Coffee\n\nCoffee is ground fresh, and brewed with boiling water.\n',
  'notes/birds.txt': 'Swifts sleep while they fly.\n\nOwls hear a mouse below the snow.\n',
  'src/pool.ts': 'export function drainPool(pool: Pool): void {\n  pool.close()\n}\n',
  'page.html':
    '<html><head><title>t</title><script>var hidden = 1</script></head><body><h1>Harbour</h1><p>Ships wait for the <b>tide</b>.</p></body></html>',
  'odd.bin': 'no extension that is read',
  'zeros.txt': new Uint8Array(64),
})
const firstIndex = await index({ path: '.', collection_name: 'all' })

interface Result {
  readonly content: string
  readonly score: number
  readonly rank: number
  readonly metadata: Readonly<Record<string, unknown>>
}
const findResults = async (words: string, more: object = {}): Promise<Result[]> => {
  const answer = await search(words, { collection_name: 'all', ...more })
  assert.equal(answer.status, 200, answer.text)
  return answer.json.results
}
const findSources = async (words: string, more: object = {}): Promise<unknown[]> =>
  (await findResults(words, more)).map(({ metadata }) => metadata.source)
const countsOf = (answer: typeof firstIndex): unknown[] => {
  assert.equal(answer.status, 200, answer.text)
  const { documents_added, documents_unchanged, documents_removed, total_documents } = answer.json
  return [documents_added, documents_unchanged, documents_removed, total_documents]
}

describe('indexing and searching', () => {
  test('indexes a folder as a collection and reports skipped files', () => {
    assert.equal(firstIndex.status, 200, firstIndex.text)
    const { duration_ms, ...rest } = firstIndex.json
    assert.ok(duration_ms >= 0)
    assert.deepEqual(rest, {
      collection_name: 'all',
      documents_added: 4,
      total_documents: 4,
      documents_unchanged: 0,
      documents_removed: 0,
      total_chunks: 4,
      embedding_model: null,
      skipped: [{ source: 'zeros.txt', reason: 'not text' }],
      skipped_total: 1,
    })
  })

  test('a result names its source and how it was found', async () => {
    const answer = await search('steeping green teas', { collection_name: 'all', top_k: 2 })
    const { results, ...head } = answer.json
    assert.deepEqual(head, {
      query: 'steeping green teas',
      collection_name: 'all',
      result_count: results.length,
    })
    const [{ content, score, rank, metadata }] = results
    assert.match(content, /^# Drinks\n\n## Tea\n/)
    assert.ok(score > 0 && score < 1)
    assert.equal(rank, 1)
    assert.deepEqual(metadata, {
      source: 'notes/tea.md',
      file_name: 'tea.md',
      extension: 'md',
      format: 'markdown',
      chunk_index: 0,
      start_line: 1,
      end_line: 9,
      page: null,
      heading: 'Drinks',
      start_offset: 0,
      end_offset: content.length,
      signals: ['lexical'],
      lexical_rank: 1,
      vector_rank: null,
    })
  })

  test('finds parts of names in code, and page text without scripts', async () => {
    assert.deepEqual(await findSources('drain'), ['src/pool.ts'])
    assert.deepEqual(await findSources('drainPool'), ['src/pool.ts'])
    assert.deepEqual(await findSources('tides'), ['page.html'])
    assert.deepEqual(await findSources('hidden'), [])
    assert.deepEqual(await findSources('the tides'), ['page.html'])
    assert.ok((await findSources('the of and')).length > 0, 'nothing else is asked')
  })

  test('filters by equality before it ranks', async () => {
    const words = 'tea coffee owls ships pool'
    assert.equal((await findResults(words)).length, 4)
    assert.deepEqual(await findSources(words, { top_k: 1, filter_metadata: { extension: 'html' } }), [
      'page.html',
    ])
    assert.deepEqual(await findSources(words, { filter_metadata: { format: 'text', start_line: 1 } }), [
      'notes/birds.txt',
    ])
    assert.deepEqual(await findSources(words, { filter_metadata: { start_line: '1' } }), [])
    assert.deepEqual(await findSources(words, { filter_metadata: { constructor: 'x' } }), [])
    assert.equal((await findResults(words, { filter_metadata: {} })).length, 4)
    assert.equal((await findResults(words, { filter_metadata: null })).length, 4)
  })

  test('requires a quoted phrase if it occurs anywhere', async () => {
    assert.deepEqual(await findSources('"boiling water" tea owls'), ['notes/tea.md'])
    assert.ok((await findSources('"owls boiling" snow')).includes('notes/birds.txt'))
  })

  test('scores descend, and ranks start at 1', async () => {
    const results = await findResults('tea coffee owls ships pool water')
    assert.deepEqual(
      results.map(({ rank }) => rank),
      [1, 2, 3, 4],
    )
    const scores = results.map(({ score }) => score)
    assert.deepEqual(
      scores,
      [...scores].sort((a, b) => b - a),
    )
    assert.ok(scores.every((score) => score > 0 && score < 1))
  })

  test('rejects invalid searches', async () => {
    for (const [body, loc] of [
      [{}, 'query'],
      [{ query: '' }, 'query'],
      [{ query: ' \n' }, 'query'],
      [{ query: 'q'.repeat(4001) }, 'query'],
      [{ query: 'q', collection_name: 'x', top_k: 0 }, 'top_k'],
      [{ query: 'q', collection_name: 'x', top_k: 51 }, 'top_k'],
      [{ query: 'q', collection_name: 'x', top_k: 1.5 }, 'top_k'],
      [{ query: 'q' }, 'collection_name'],
      [{ query: 'q', collection_name: 'a/b' }, 'collection_name'],
      [{ query: 'q', collection_name: '' }, 'collection_name'],
      [{ query: 'q', collection_name: 'x', filter_metadata: { a: { b: 1 } } }, 'filter_metadata'],
      [{ query: 'q', collection_name: 'x', filter_metadata: 'x' }, 'filter_metadata'],
    ] as const) {
      const answer = await api.post('/rag/search', { json: body })
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(answer.json.errors[0].loc.slice(0, 2), ['body', loc])
    }
    const missing = await search('q', { collection_name: 'none' })
    assert.equal(missing.status, 404)
    assert.deepEqual(missing.json, { detail: 'Collection not found', code: 'rag.missing' })
  })

  test('rejects invalid index requests', async () => {
    for (const [body, loc] of [
      [{ collection_name: 'x' }, 'path'],
      [{ path: '', collection_name: 'x' }, 'path'],
      [{ path: '.' }, 'collection_name'],
      [{ path: '.', collection_name: null }, 'collection_name'],
      [{ path: '.', collection_name: 'a\nb' }, 'collection_name'],
      [{ path: '.', collection_name: 'n'.repeat(101) }, 'collection_name'],
      [{ path: '.', collection_name: '..' }, 'collection_name'],
      [{ path: '.', collection_name: 'x', extensions: ['a b'] }, 'extensions'],
      [{ path: '.', collection_name: 'x', exclude_patterns: [''] }, 'exclude_patterns'],
    ] as const) {
      const answer = await index(body)
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(answer.json.errors[0].loc.slice(0, 2), ['body', loc])
    }
    for (const [path, detail, code] of [
      ['..', 'The path is outside RAG_ROOT', 'rag.path_outside'],
      ['/etc/hostname', 'The path is outside RAG_ROOT', 'rag.path_outside'],
      ['nowhere', 'The path does not exist', 'rag.path_missing'],
    ] as const) {
      const answer = await index({ path, collection_name: 'default' })
      assert.equal(answer.status, 400)
      assert.deepEqual(answer.json, { detail, code })
    }
    assert.equal((await api.get('/rag/collections/default')).status, 404, 'a failed first run leaves nothing')
  })
})

describe('collections', () => {
  test('can be listed and described, with their files', async () => {
    assert.deepEqual((await api.get('/rag/collections')).json, ['all'])
    const { created_at, updated_at, ...info } = (await api.get('/rag/collections/all')).json
    assert.ok(created_at <= updated_at)
    assert.deepEqual(info, {
      name: 'all',
      document_count: 4,
      chunk_count: 4,
      metadata: { path: '.', extensions: [], exclude_patterns: [] },
      embedding_model: null,
    })
    assert.deepEqual((await api.get('/rag/collections/all/files')).json, {
      collection_name: 'all',
      files: ['notes/birds.txt', 'notes/tea.md', 'page.html', 'src/pool.ts'].map((source) => ({
        source,
        chunks: 1,
      })),
      next: null,
      total_files: 4,
      total_chunks: 4,
    })
    for (const path of ['/rag/collections/none', '/rag/collections/none/files']) {
      const answer = await api.get(path)
      assert.equal(answer.status, 404)
      assert.deepEqual(answer.json, { detail: 'Collection not found', code: 'rag.missing' })
    }
  })

  test('a second run indexes new files and removes deleted ones', async () => {
    write({ 'more/a.md': 'Apples ripen.\n', 'more/b.md': 'Bees hum.\n', 'more/c.md': 'Cats purr.\n' })
    const body = { path: 'more', collection_name: 'more' }
    assert.deepEqual(countsOf(await index(body)), [3, 0, 0, 3])
    const rows = () => query(`select id::int from rag_file where source like 'more/%' order by source`)
    const before = await rows()
    assert.deepEqual(countsOf(await index(body)), [0, 3, 0, 3])
    assert.deepEqual(await rows(), before, 'what has not changed is not written')

    write({ 'more/b.md': 'Bees dance.\n', 'more/d.md': 'Dogs bark.\n' })
    rmSync(join(root, 'more/c.md'))
    assert.deepEqual(countsOf(await index(body)), [2, 1, 1, 3])
    const after = await rows()
    assert.equal(after[0]!.id, before[0]!.id)
    for (const [words, source] of [
      ['dancing', ['more/b.md']],
      ['humming', []],
      ['purring', []],
      ['barks', ['more/d.md']],
      ['ripe apples', ['more/a.md']],
    ] as const)
      assert.deepEqual(await findSources(words, { collection_name: 'more' }), source)
  })

  test('a run keeps the files outside its path', async () => {
    write({ 'left/l.txt': 'Lions roar.', 'right/r.txt': 'Ravens call.', 'right/s.txt': 'Seals dive.' })
    const both = { collection_name: 'both' }
    assert.deepEqual(countsOf(await index({ path: 'left', ...both })), [1, 0, 0, 1])
    assert.deepEqual(countsOf(await index({ path: 'right', ...both })), [2, 0, 0, 3])
    assert.deepEqual(countsOf(await index({ path: 'right/r.txt', ...both })), [0, 1, 0, 3])
    assert.deepEqual(
      countsOf(
        await index({ path: '.', extensions: ['.TXT'], exclude_patterns: ['right', '!*.key'], ...both }),
      ),
      [1, 1, 2, 2],
      'left/l.txt stays, notes/birds.txt is read, right leaves',
    )
  })

  test('deletion takes effect immediately and removes the rows soon after', async () => {
    write({ 'gone/g.md': 'Geese fly south.\n' })
    await index({ path: 'gone', collection_name: 'gone bird' })
    assert.deepEqual(await findSources('geese', { collection_name: 'gone bird' }), ['gone/g.md'])
    const answer = await api.call('DELETE', '/rag/collections/gone%20bird')
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.json, { deleted: true, collection_name: 'gone bird' })
    assert.equal((await search('geese', { collection_name: 'gone bird' })).status, 404)
    const again = await api.call('DELETE', '/rag/collections/gone%20bird')
    assert.equal(again.status, 404)
    assert.deepEqual(again.json, { detail: 'Collection not found', code: 'rag.missing' })
    const rows = () =>
      query(`select 1 from rag_collection where name = 'gone bird' union all select 1 from rag_file where source like 'gone/%'
        union all select 1 from rag_chunk where content like 'Geese%'`)
    await until('the rows are gone', async () => (await rows()).length === 0)
    assert.deepEqual(countsOf(await index({ path: 'gone', collection_name: 'gone bird' })), [1, 0, 0, 1])
  })

  test('a background run is a job, and the same key returns the same job', async () => {
    const options = { headers: { prefer: 'respond-async', 'idempotency-key': 'k1' } }
    const body = { path: 'notes', collection_name: 'later' }
    const one = await index(body, options)
    assert.equal(one.status, 202, one.text)
    assert.deepEqual((await index(body, options)).json, one.json)
    const job = () => api.get(`/api/v1/jobs/${one.json.job_id}`)
    await until('the job is done', async () => (await job()).json.status === 'done')
    const { result, progress } = (await job()).json
    assert.equal(result.documents_added, 2)
    assert.deepEqual(progress, { current: 2, total: 2 })
  })

  test('health reports the configuration of retrieval', async () => {
    const { collections, documents, chunks, ...health } = (await api.get('/rag/health')).json
    assert.ok(collections > 0 && documents > 0 && chunks > 0)
    assert.deepEqual(health, {
      service: 'rag',
      status: 'healthy',
      embeddings: 'lexical',
      active_embeddings: 'lexical',
      model: null,
      pgvector: false,
      configuration_valid: true,
      validation_errors: [],
    })
  })
})

test('a search prefers the chunks of a file whose other chunks have words of the query', async () => {
  const section = (title: string, word: string) =>
    `# ${title}\n\n${`Plain words about a ${word} fill this section. `.repeat(10)}\n\n`
  write({
    'long/a.md': section('One', 'glacier') + section('Two', 'meadow'),
    'long/b.md': section('One', 'glacier') + section('Two', 'turbine'),
    'long/c.md': section('One', 'meadow') + section('Two', 'harbour'),
  })
  const long = { collection_name: 'long' }
  assert.equal((await index({ path: 'long', ...long })).json.total_chunks, 6)
  const found = await findResults('glacier turbine', { ...long, filter_metadata: { heading: 'One' } })
  assert.deepEqual(
    found.slice(0, 2).map(({ metadata }) => metadata.source),
    ['long/b.md', 'long/a.md'],
  )
  assert.ok(found[0]!.score > found[1]!.score)
})
