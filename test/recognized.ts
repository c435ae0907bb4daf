import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import tesseract from 'tesseract.js'
import type { SandboxOptions } from '../workers/children/sandbox.ts'

/**
 * Recorded output of the OCR engine, for tests of the code around it. `data/recognized/` has one file per image, named
 * by a hash of its pixels. For images without a file, the slower real engine runs. Such images occur after a change of
 * a renderer, or on a CPU that renders other pixels. `RECORD_OCR=1 npm test -- FILE` adds the missing files. To drop
 * unused files, delete the folder and record it again. Only runs at depth `quick` use recorded output.
 */

const FOLDER = fileURLToPath(new URL('data/recognized/', import.meta.url))
const IS_RECORDING = process.env.RECORD_OCR === '1'
// Part of the file names, because a new version of the engine may read other words.
const { version } = createRequire(import.meta.resolve('tesseract.js'))('tesseract.js-core/package.json') as {
  readonly version: string
}
// The code under test terminates the engine's thread, so the thread must live until then.
const IDLE_THREAD = `require('node:worker_threads').parentPort.on('message', () => {})`

type CreateEngine = typeof tesseract.createWorker
type Engine = Awaited<ReturnType<CreateEngine>>

/** Replaces the engine in this process until the test file ends. Close engines that were created before. */
export function useRecordedOutput(isRecording = IS_RECORDING): void {
  const { createWorker } = tesseract
  mock.method(tesseract, 'createWorker', (...args: Parameters<CreateEngine>) =>
    createRecordedEngine(createWorker, args, isRecording),
  )
}

/** Returns options of a child pool that replace the engine in its children. */
export function createRecordedOutputOptions(): SandboxOptions {
  const entry = join(mkdtempSync(join(tmpdir(), 'child-')), 'main.mjs')
  const main = new URL('../workers/children/main.ts', import.meta.url).href
  // A child inherits no environment variables, so its code contains the recording flag.
  const lines = [
    `const { useRecordedOutput } = await import(${JSON.stringify(import.meta.url)})`,
    `useRecordedOutput(${IS_RECORDING})`,
    `await import(${JSON.stringify(main)})`,
  ]
  writeFileSync(entry, lines.join('\n'))
  const languages = join(tmpdir(), 'languages-*')
  return { entry, reads: [fileURLToPath(new URL('.', import.meta.url))], writes: [FOLDER, languages] }
}

/** Creates an engine that starts the real one only for an image without recorded output. */
async function createRecordedEngine(
  createEngine: CreateEngine,
  [languages, mode, options]: Parameters<CreateEngine>,
  isRecording: boolean,
): Promise<Engine> {
  const thread = new Worker(IDLE_THREAD, { eval: true })
  // Copy the folder, because the code under test deletes it once the engine has started.
  const langPath = mkdtempSync(join(tmpdir(), 'languages-'))
  cpSync(options!.langPath!, langPath, { recursive: true })
  let parameters: Parameters<Engine['setParameters']>[0] = {}
  let starting: Promise<Engine> | undefined
  const start = async (): Promise<Engine> => {
    if (!isRecording)
      process.emitWarning('The OCR engine starts: a picture has no output in test/data/recognized')
    const engine = await createEngine(languages, mode, { ...options, langPath })
    thread.once('exit', () => void engine.terminate())
    await engine.setParameters(parameters)
    return engine
  }
  const engine: Pick<Engine, 'setParameters' | 'recognize'> = {
    setParameters: async (given) => {
      parameters = given
      return { jobId: '', data: null }
    },
    recognize: async (image, ...how) => {
      const request = JSON.stringify([version, languages, mode, parameters, ...how])
      const hash = createHash('sha256')
        .update(request)
        .update(image as Buffer)
        .digest('hex')
      const file = join(FOLDER, `${hash.slice(0, 32)}.tsv`)
      if (existsSync(file)) return parseOutput(readFileSync(file, 'utf8'))
      starting ??= start()
      const read = await (await starting).recognize(image, ...how)
      if (isRecording) storeOutput(file, read.data)
      return read
    },
  }
  return engine as Engine
}

type Output = Awaited<ReturnType<Engine['recognize']>>

/** Writes a file whose first line is the confidence, followed by the TSV. */
function storeOutput(file: string, { confidence, tsv }: Output['data']): void {
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(file, `${confidence}\n${tsv}`)
}

function parseOutput(text: string): Output {
  const end = text.indexOf('\n')
  const data = { confidence: Number(text.slice(0, end)), tsv: text.slice(end + 1) }
  return { jobId: '', data } as Output
}
