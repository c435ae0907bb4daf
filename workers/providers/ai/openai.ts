/** The client for OpenAI's protocol, which all six providers speak. The only importer of `openai`. */
import type { OpenAI } from 'openai'

export type { OpenAI } from 'openai'

/**
 * Creates a client.
 * @param timeoutMs limits the wait for the headers of an answer; the body has no limit.
 */
export async function createClient(
  { apiKey, baseUrl }: { readonly apiKey: string; readonly baseUrl: string },
  timeoutMs: number,
  maxRetries: number,
): Promise<OpenAI> {
  const { default: Client } = await import('openai')
  // Disable the log of the client: it would contain answers of providers.
  return new Client({ apiKey, baseURL: baseUrl, timeout: timeoutMs, maxRetries, logLevel: 'off' })
}

/** Streams a file as it is read, so that the whole file is never in memory. */
export async function createStreamingFile(pieces: AsyncIterable<Uint8Array>, name: string, type: string) {
  const { toStreamingFile } = await import('openai')
  return toStreamingFile(pieces, name, { type })
}
