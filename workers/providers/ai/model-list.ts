import { Failure, fail } from '../../../sql/errors.ts'
import { recordCall } from '../call.ts'
import { describeNetworkError } from '../wait.ts'

/** Downloads the public model list, which has a few megabytes. */

const LIMITS = { answerMs: 60_000, maxBytes: 64 * 1024 * 1024 }

/**
 * Downloads the model list.
 * @throws fail('llm.list_failed') for outages, which a retry may cure; fail('llm.list_refused'); the signal's reason.
 */
export async function readModelList(url: string, signal: AbortSignal, limits = LIMITS): Promise<string> {
  const withTimeout = AbortSignal.any([signal, AbortSignal.timeout(limits.answerMs)])
  try {
    return await recordCall({ provider: 'models.dev', operation: 'list', url }, () =>
      fetchList(url, withTimeout, limits.maxBytes),
    )
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Failure) throw error
    const reason = withTimeout.aborted ? 'no complete answer in time' : describeNetworkError(error).code
    throw fail('llm.list_failed', { reason })
  }
}

async function fetchList(url: string, signal: AbortSignal, maxBytes: number): Promise<string> {
  const response = await fetch(url, {
    headers: { accept: 'application/json', 'user-agent': 'millrace' },
    signal,
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw fail('llm.list_failed', { reason: `HTTP status ${response.status}` })
  }
  return readText(response, maxBytes)
}

async function readText(response: Response, max: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    // Leaving the loop cancels the download.
    if (bytes > max) throw fail('llm.list_refused', { reason: `it has more than ${max} bytes` })
    chunks.push(chunk)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch {
    throw fail('llm.list_refused', { reason: 'it is not UTF-8' })
  }
}
