import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after } from 'node:test'
import type { TestDatabase } from '../database.ts'
import { type Answered, type Api, type CallOptions, startEdgeAndDatabase } from './harness.ts'
import { startOwnWorker } from './own-worker.ts'

/** A folder to index, with an edge and a worker in this process. */
export interface RagService extends TestDatabase {
  readonly api: Api
  readonly root: string
  /** Writes files below the indexed folder. */
  write(files: Readonly<Record<string, string | Uint8Array>>): void
  index(body: object, options?: CallOptions): Promise<Answered>
  search(query: string, more?: object): Promise<Answered>
}

/** Creates a temporary folder that is removed after the test file. */
export function createFolder(): string {
  const made = realpathSync(mkdtempSync(join(tmpdir(), 'millrace-rag-')))
  after(() => rmSync(made, { recursive: true, force: true }))
  return made
}

/** Writes files below a folder, creating missing folders. */
export function writeFiles(root: string, files: Readonly<Record<string, string | Uint8Array>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
}

/** Starts a `RagService`. Call it at the top of the file, not in a hook. */
export async function startRag(env: Readonly<Record<string, string>> = {}): Promise<RagService> {
  const root = createFolder()
  const settings = { RAG_ROOT: root, RAG_EMBEDDINGS: 'lexical', ...env }
  const world = await startEdgeAndDatabase({ env: settings })
  await startIndexer(world.url, settings)
  const { api } = world
  return {
    ...world,
    root,
    write: (files) => writeFiles(root, files),
    index: (json, options = {}) => api.post('/rag/index', { json, ...options }),
    search: (query, more = {}) => api.post('/rag/search', { json: { query, ...more } }),
  }
}

/** Starts a worker for indexing on a database. The worker stops after the test file. */
export async function startIndexer(url: string, env: Readonly<Record<string, string>>): Promise<void> {
  await startOwnWorker(url, 'rag,rag_model,system', env)
}
