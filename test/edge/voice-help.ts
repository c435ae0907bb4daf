import http from 'node:http'
import { type SpeechStandIn, startSpeechServer } from '../standins/speech.ts'
import type { Api } from './harness.ts'
import { startOwnWorker } from './own-worker.ts'

/** A stand-in for a speech provider, and the settings that point to it. */
export interface SpeechSetup {
  readonly server: SpeechStandIn
  readonly env: Readonly<Record<string, string>>
}

export async function startSpeech(): Promise<SpeechSetup> {
  const server = await startSpeechServer()
  return { server, env: { OPENAI_API_KEY: 'sk-test', OPENAI_BASE_URL: server.url } }
}

export const startVoiceWorker = (
  url: string,
  env: Readonly<Record<string, string>>,
): Promise<{ stop(): Promise<void> }> => startOwnWorker(url, 'voice', env)

/** A response that may still be arriving. */
export interface StreamedResponse {
  readonly status: Promise<number>
  readonly headers: Promise<http.IncomingHttpHeaders>
  /** The bytes received so far. */
  heard(): Buffer
  /** Resolves with `whole` or `broken` when the response ends. */
  readonly end: Promise<'whole' | 'broken'>
  leave(): void
}

export function requestStream(api: Api, path: string): StreamedResponse {
  const chunks: Buffer[] = []
  const head = Promise.withResolvers<http.IncomingMessage>()
  const end = Promise.withResolvers<'whole' | 'broken'>()
  const request = http.get({ host: '127.0.0.1', port: api.port, path, agent: false }, (message) => {
    head.resolve(message)
    message.on('data', (chunk: Buffer) => chunks.push(chunk))
    message.on('close', () => end.resolve(message.complete ? 'whole' : 'broken'))
    message.on('error', () => {})
  })
  request.on('error', (error) => {
    head.reject(error)
    end.resolve('broken')
  })
  const status = head.promise.then((message) => message.statusCode!)
  const headers = head.promise.then((message) => message.headers)
  // Avoid unhandled rejections in tests that await neither promise.
  for (const one of [status, headers]) one.catch(() => {})
  return {
    status,
    headers,
    heard: () => Buffer.concat(chunks),
    end: end.promise,
    leave: () => request.destroy(),
  }
}
