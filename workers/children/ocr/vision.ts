/** OCR of page images. The only importer of `tesseract.js`. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Worker as Thread } from 'node:worker_threads'
import type { Worker as Tesseract } from 'tesseract.js'
import type { PlacedWord } from '../../../tasks/context.ts'
import { findDataUrl, splitLanguages } from '../../../tasks/documents/language-data.ts'
import { readCpuMs } from '../../../tasks/platform/process-usage.ts'
import type { GreyImage } from '../images/grey.ts'
import { Unreadable } from '../images/images.ts'
import { layOutWords } from './ocr-words.ts'

/** Returns the model name for the page row. */
export const modelOf = (languages: string): string => `tesseract/${languages}`

/** OCR result of a page. */
export interface OcrResult {
  readonly text: string
  /** The words with their places on the image. */
  readonly words: readonly PlacedWord[]
  /** The model's mean confidence over all words, 0 to 100. */
  readonly confidence: number
  /** Median word height in pixels; 0 without words. */
  readonly wordHeight: number
}

/** CPU time limit for one page in ms, below the child's limit. A dense page takes ten seconds. */
export const MAX_PAGE_CPU_MS = 22_000

interface Engine {
  readonly tesseract: Tesseract
  readonly thread: Thread
  readonly broken: Promise<never>
  used: number
}

interface StartedEngine {
  readonly languages: string
  readonly engine: Promise<Engine>
}

// An engine's memory only grows (naptha/tesseract.js#977), so it is replaced after this many pages.
const PAGES_PER_ENGINE = 100
// A larger image replaces the engine immediately. An A4 page at 250 dpi has six million pixels.
const MAX_PIXELS = 12_000_000
const MAX_START_CPU_MS = 20_000
const LIMIT_CHECK_MS = 100

let started: StartedEngine | null = null

/**
 * Reads words in these languages, e.g. `deu+fra`.
 * @throws Unreadable if the engine crashes or exceeds `limitMs` of CPU time. The next call starts a new engine.
 * @throws Error if the engine fails to start.
 */
export async function recognize(
  grey: GreyImage,
  languages: string,
  limitMs = MAX_PAGE_CPU_MS,
): Promise<OcrResult> {
  const seen = await runOnEngine(
    languages,
    limitMs,
    'The vision provider failed to read the page',
    (tesseract) => tesseract.recognize(toPgm(grey), {}, { text: false, tsv: true }),
  )
  if (grey.data.length > MAX_PIXELS) await closeVision()
  return { confidence: seen.data.confidence, ...layOutWords(seen.data.tsv ?? '', grey) }
}

/** Stops the engine, if one runs. */
export async function closeVision(): Promise<void> {
  const ending = started
  started = null
  const closing = await ending?.engine.catch(() => null)
  await closing?.thread.terminate()
}

async function runOnEngine<T>(
  languages: string,
  limitMs: number,
  failure: string,
  job: (tesseract: Tesseract) => Promise<T>,
): Promise<T> {
  if (started !== null && started.languages !== languages) await closeVision()
  started ??= { languages, engine: startEngine(languages) }
  const current = await started.engine.catch((error) => {
    started = null
    throw error
  })
  current.thread.ref()
  try {
    const done = await runWithinCpuLimit(limitMs, [job(current.tesseract), current.broken])
    if (++current.used >= PAGES_PER_ENGINE) await closeVision()
    return done
  } catch (error) {
    // The engine's state is unknown after an error.
    await closeVision()
    throw error instanceof Unreadable ? error : new Unreadable(failure, { cause: error })
  } finally {
    // An idle engine must not keep its process alive.
    current.thread.unref()
  }
}

async function startEngine(languages: string): Promise<Engine> {
  const folder = await createDataFolder(languages)
  try {
    return await startWithData(languages, folder)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Collects the data of all languages in one temporary folder for tesseract.js; each language has its own package. */
async function createDataFolder(languages: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tesseract-'))
  for (const code of splitLanguages(languages)) {
    const file = `${code}.traineddata.gz`
    const data = new URL(`4.0.0_best_int/${file}`, findDataUrl(code)!)
    await copyFile(fileURLToPath(data), join(folder, file))
  }
  return folder
}

async function startWithData(languages: string, langPath: string): Promise<Engine> {
  const { createWorker, OEM } = (await import('tesseract.js')).default
  const options = { langPath, gzip: true, cacheMethod: 'none', errorHandler: () => {} }
  // `createWorker` exposes its thread only when it is ready, and adds no error listener: an earlier crash would be an
  // uncaught error. The diagnostics channel exposes the thread during the call.
  let thread: Thread | undefined
  const made = (message: unknown) => {
    thread = (message as { worker: Thread }).worker
  }
  subscribe('worker_threads', made)
  const created = createWorker(languages, OEM.LSTM_ONLY, options)
  unsubscribe('worker_threads', made)
  created.catch(() => {})
  if (!thread) throw new Error('tesseract.js created no thread')
  // Leptonica prints a page of warnings about every damaged image. Real failures also arrive as errors.
  thread.stderr.unpipe()
  thread.stderr.resume()
  const broken = rejectOnCrash(thread)
  try {
    const tesseract = await runWithinCpuLimit(MAX_START_CPU_MS, [created, broken])
    // Disables the second, inverted pass over lines of low confidence, which takes a tenth of the time.
    await tesseract.setParameters({ invert_threshold: '0' } as object)
    thread.unref()
    return { tesseract, thread, broken, used: 0 }
  } catch (cause) {
    await thread.terminate()
    throw new Error('The vision engine failed to start', { cause })
  }
}

function rejectOnCrash(thread: Thread): Promise<never> {
  const broken = new Promise<never>((_, reject) => {
    thread.on('error', reject)
    thread.once('exit', () => reject(new Error('The vision engine exited')))
  })
  broken.catch(() => {})
  return broken
}

async function runWithinCpuLimit<T>(limitMs: number, work: Promise<T>[]): Promise<T> {
  const end = readCpuMs() + limitMs
  const late = Promise.withResolvers<never>()
  const timer = setInterval(() => {
    if (readCpuMs() > end) late.reject(new Unreadable('Reading the page exceeded its time limit'))
  }, LIMIT_CHECK_MS)
  try {
    return await Promise.race([...work, late.promise])
  } finally {
    clearInterval(timer)
  }
}

// Encodes the image as a portable greymap. A PNG of an A4 page at 250 dpi takes 150 ms to encode, and 270 ms longer to
// read.
function toPgm({ data, width, height }: GreyImage): Buffer {
  return Buffer.concat([Buffer.from(`P5\n${width} ${height}\n255\n`), data])
}
