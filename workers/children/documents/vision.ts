/** Reading words from pixels. The only importer of `tesseract.js`. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Worker as Thread } from 'node:worker_threads'
import type { Worker as Tesseract } from 'tesseract.js'
import { findDataUrl, splitLanguages } from '../../../tasks/documents/language-data.ts'
import { cpuMs } from '../serve.ts'
import type { Grey } from './grey.ts'
import { Unreadable } from './images.ts'
import { layOut } from './ocr-words.ts'

/** The model's name as a page row shows it. */
export const modelOf = (languages: string): string => `tesseract/${languages}`

/** What the model saw. */
export interface Seen {
  readonly text: string
  /** Its own mean over the words, 0 to 100. */
  readonly confidence: number
  /** The median height of its words, in pixels; 0 when there are none. */
  readonly wordHeight: number
}

/** CPU time that reading one page may take, in ms; a dense one takes ten seconds. Below the child's limit for it. */
export const PAGE_CPU_MS = 22_000

interface Engine {
  readonly tesseract: Tesseract
  readonly thread: Thread
  readonly broken: Promise<never>
  used: number
}

interface Started {
  readonly languages: string
  readonly engine: Promise<Engine>
}

// Its memory only grows (naptha/tesseract.js#977), so an engine is replaced after this many pages, and at once after a
// picture that has made it large: an A4 page at 250 dpi has six million pixels.
const PAGES_PER_ENGINE = 100
const MAX_PIXELS = 12_000_000
const START_CPU_MS = 20_000
const LOOK_MS = 100

let started: Started | null = null

/**
 * Reads words in these languages, e.g. `deu+fra`. Throws `Unreadable` when the engine crashes on this image or takes more CPU time than `limitMs` (it is
 * replaced, the process lives on), and a plain Error when the engine cannot start at all.
 */
export async function recognize(grey: Grey, languages: string, limitMs = PAGE_CPU_MS): Promise<Seen> {
  const seen = await use(
    languages,
    limitMs,
    'The page could not be read by the vision provider',
    (tesseract) => tesseract.recognize(toPgm(grey), {}, { text: false, tsv: true }),
  )
  if (grey.data.length > MAX_PIXELS) await closeVision()
  return { confidence: seen.data.confidence, ...layOut(seen.data.tsv ?? '') }
}

/** Ends the engine, if there is one. */
export async function closeVision(): Promise<void> {
  const ending = started
  started = null
  const closing = await ending?.engine.catch(() => null)
  await closing?.thread.terminate()
}

async function use<T>(
  languages: string,
  limitMs: number,
  failure: string,
  job: (tesseract: Tesseract) => Promise<T>,
): Promise<T> {
  if (started !== null && started.languages !== languages) await closeVision()
  started ??= { languages, engine: start(languages) }
  const current = await started.engine.catch((error) => {
    started = null
    throw error
  })
  current.thread.ref()
  try {
    const done = await within(limitMs, [job(current.tesseract), current.broken])
    if (++current.used >= PAGES_PER_ENGINE) await closeVision()
    return done
  } catch (error) {
    // After an error the state inside the engine is unknown.
    await closeVision()
    throw error instanceof Unreadable ? error : new Unreadable(failure, { cause: error })
  } finally {
    // An idle engine must not keep its process alive.
    current.thread.unref()
  }
}

async function start(languages: string): Promise<Engine> {
  const folder = await dataFolder(languages)
  try {
    return await startWith(languages, folder)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** A folder with the data of all languages, in which tesseract.js looks for it; each is in a package of its own. */
async function dataFolder(languages: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tesseract-'))
  for (const code of splitLanguages(languages)) {
    const file = `${code}.traineddata.gz`
    const data = new URL(`4.0.0_best_int/${file}`, findDataUrl(code)!)
    await copyFile(fileURLToPath(data), join(folder, file))
  }
  return folder
}

async function startWith(languages: string, langPath: string): Promise<Engine> {
  const { createWorker, OEM } = (await import('tesseract.js')).default
  const options = { langPath, gzip: true, cacheMethod: 'none', errorHandler: () => {} }
  // createWorker exposes its thread only once that is ready, without an error listener: a crash before that would
  // be an uncaught error here. The channel exposes the thread when it is created, within the call.
  let thread: Thread | undefined
  const made = (message: unknown) => {
    thread = (message as { worker: Thread }).worker
  }
  subscribe('worker_threads', made)
  const created = createWorker(languages, OEM.LSTM_ONLY, options)
  unsubscribe('worker_threads', made)
  created.catch(() => {})
  if (!thread) throw new Error('tesseract.js made no thread')
  // Leptonica prints a page of warnings about every damaged image; what matters arrives as an error, too.
  thread.stderr.unpipe()
  thread.stderr.resume()
  const broken = whenBroken(thread)
  try {
    const tesseract = await within(START_CPU_MS, [created, broken])
    // It would read each line that makes little sense once more, white on black, which takes a tenth of the time.
    await tesseract.setParameters({ invert_threshold: '0' } as object)
    thread.unref()
    return { tesseract, thread, broken, used: 0 }
  } catch (cause) {
    await thread.terminate()
    throw new Error('The vision engine did not start', { cause })
  }
}

function whenBroken(thread: Thread): Promise<never> {
  const broken = new Promise<never>((_, reject) => {
    thread.on('error', reject)
    thread.once('exit', () => reject(new Error('The vision engine ended')))
  })
  broken.catch(() => {})
  return broken
}

async function within<T>(limitMs: number, work: Promise<T>[]): Promise<T> {
  const end = cpuMs() + limitMs
  const late = Promise.withResolvers<never>()
  const timer = setInterval(() => {
    if (cpuMs() > end) late.reject(new Unreadable('The page takes too long to be read'))
  }, LOOK_MS)
  try {
    return await Promise.race([...work, late.promise])
  } finally {
    clearInterval(timer)
  }
}

// Portable greymap: as PNG an A4 page at 250 dpi takes 150 ms to encode and 270 ms more to read.
function toPgm({ data, width, height }: Grey): Buffer {
  return Buffer.concat([Buffer.from(`P5\n${width} ${height}\n255\n`), data])
}
