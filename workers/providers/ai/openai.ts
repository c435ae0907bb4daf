/** The client for OpenAI's protocol, which all six providers speak. The only importer of `openai`. */
import type { OpenAI } from 'openai'
import { createLazy } from '../../../tasks/platform/lazy.ts'

export type { OpenAI } from 'openai'

/** An option of requests, besides those of the client. */
export interface StartOption {
  /** Waits until the request may start, also before each repetition by the client; absent without a rate. */
  readonly start?: () => Promise<void>
}

const loadClient = createLazy(async () => {
  const { default: Client } = await import('openai')
  return class extends Client {
    /** Runs before each request, outside its time limit. */
    protected override async prepareOptions(options: object): Promise<void> {
      await (options as StartOption).start?.()
    }
  }
})

/**
 * Creates a client.
 * @param timeoutMs limits the wait for the headers of an answer; the body has no limit.
 */
export async function createClient(
  { apiKey, baseUrl }: { readonly apiKey: string; readonly baseUrl: string },
  timeoutMs: number,
  maxRetries: number,
): Promise<OpenAI> {
  const Client = await loadClient()
  // Disable the log of the client: it would contain answers of providers.
  return new Client({
    apiKey,
    baseURL: baseUrl,
    timeout: timeoutMs,
    maxRetries,
    logLevel: 'off',
    fetch: fetchWithWholeErrors,
  })
}

// Longer error bodies are cut, and are then no JSON.
const MAX_ERROR_BYTES = 256 * 1024

/**
 * Wraps the body of each refusal, because the client keeps its field `error` only. Other providers put their reasons
 * next to it, or into a list.
 */
async function fetchWithWholeErrors(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init)
  if (response.ok) return response
  const text = await readStart(response)
  const { status, headers } = response
  return new Response(JSON.stringify({ error: { body: parse(text) } }), {
    status,
    headers: [...headers].filter(([name]) => !/^content-(length|encoding)$/.test(name)),
  })
}

async function readStart(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk)
    size += chunk.length
    // Leaving the loop cancels the download.
    if (size > MAX_ERROR_BYTES) break
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Returns the body of a refusal, from the client's error. */
export const bodyOfRefusal = (error: unknown): unknown =>
  (error as { readonly error?: { readonly body?: unknown } }).error?.body

/** Streams a file as it is read, so that the whole file is never in memory. */
export async function createStreamingFile(pieces: AsyncIterable<Uint8Array>, name: string, type: string) {
  const { toStreamingFile } = await import('openai')
  return toStreamingFile(pieces, name, { type })
}
