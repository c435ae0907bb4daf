/** The client for OpenAI's protocol, which all six providers speak. The only importer of `openai`. */
import type { OpenAI } from 'openai'

export type { OpenAI } from 'openai'

/** A client for an endpoint. `timeoutMs` is how long the headers of an answer may take. */
export async function clientOf(
  { apiKey, baseUrl }: { readonly apiKey: string; readonly baseUrl: string },
  timeoutMs: number,
  maxRetries: number,
): Promise<OpenAI> {
  const { default: Client } = await import('openai')
  // Its log would contain what providers answer.
  return new Client({ apiKey, baseURL: baseUrl, timeout: timeoutMs, maxRetries, logLevel: 'off' })
}

/** A file that is read while it is sent, so that it never is in memory as a whole. */
export async function streamingFile(pieces: AsyncIterable<Uint8Array>, name: string, type: string) {
  const { toStreamingFile } = await import('openai')
  return toStreamingFile(pieces, name, { type })
}
