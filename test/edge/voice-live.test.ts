import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { answerSlowly, answerWithAudio, createAudio } from '../standins/speech.ts'
import { until } from '../until.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'
import { requestStream, startSpeech, startVoiceWorker } from './voice-help.ts'

/**
 * Streams voice previews to early, late and concurrent listeners while a worker synthesizes them. The provider or the
 * worker may fail meanwhile.
 */

const { server, env: reach } = await startSpeech()
const env = { AUTH_LEVEL: 'none', WORKER_MAX_TRIES: '2', ...reach }
const { api, query, url } = await startEdgeAndDatabase({ env })
const otherEdge = await startEdge(url, { env })
const worker = await startVoiceWorker(url, env)
afterEach(() => {
  server.answer = answerWithAudio(createAudio(5000))
})

let texts = 0
const createText = (): string => `Text-${++texts}`
const countRequests = () => server.asked.length
const countJobs = async () =>
  Number((await query(`select count(*) as n from job where name = 'voice.preview'`))[0]!.n)

describe('a preview that is still being synthesized', () => {
  test('streams its first bytes before the last are made, also to late listeners', async () => {
    const text = createText()
    const bytes = createAudio(30_000, 5)
    const speech = answerSlowly(server)
    const path = `/voice/preview/coral?text=${encodeURIComponent(text)}`
    const before = [countRequests(), await countJobs()]
    const early = requestStream(api, path)
    speech.write(bytes.subarray(0, 10_000))
    await until('the listener has the first bytes', () => early.heard().length >= 8_000)
    const headers = await early.headers
    assert.equal(headers['content-type'], 'audio/mpeg')
    assert.equal(headers['content-length'], undefined)
    const late = requestStream(api, path)
    const other = requestStream(otherEdge, path)
    await until(
      'the late listeners have the existing bytes',
      () => late.heard().length >= 8_000 && other.heard().length >= 8_000,
    )
    speech.write(bytes.subarray(10_000, 20_000))
    await until('all listeners have the new bytes', () =>
      [early, late, other].every((one) => one.heard().length >= 18_000),
    )
    speech.write(bytes.subarray(20_000))
    speech.end()
    for (const one of [early, late, other]) {
      assert.equal(await one.end, 'whole')
      assert.ok(one.heard().equals(bytes))
      assert.equal((await one.headers).etag, headers.etag)
    }
    assert.deepEqual([countRequests(), await countJobs()], [before[0]! + 1, before[1]! + 1])
    const kept = await api.get(path, { headers: { 'if-none-match': headers.etag! } })
    assert.equal(kept.status, 304)
  })

  test('delivers many tiny chunks completely', async () => {
    const bytes = createAudio(20_000, 9)
    const speech = answerSlowly(server)
    const one = requestStream(api, `/voice/preview/coral?text=${createText()}`)
    await speech.begun
    for (let at = 0; at < bytes.length; at += 100) speech.write(bytes.subarray(at, at + 100))
    speech.end()
    assert.equal(await one.end, 'whole')
    assert.ok(one.heard().equals(bytes))
  })

  test('continues after a listener disconnects', async () => {
    const path = `/voice/preview/ash?text=${createText()}`
    const speech = answerSlowly(server)
    const one = requestStream(api, path)
    speech.write(createAudio(4000))
    await until('the listener has the first bytes', () => one.heard().length > 0)
    one.leave()
    speech.end()
    await until(
      'the preview is stored',
      async () => (await api.call('HEAD', path)).headers['content-length'] === '4000',
    )
  })

  test('breaks off with its provider, and is synthesized again for the next request', async () => {
    const path = `/voice/preview/ash?text=${createText()}`
    const speech = answerSlowly(server)
    const one = requestStream(api, path)
    speech.write(createAudio(4000))
    await until('the listener has the first bytes', () => one.heard().length > 0)
    // Set the answer to the next attempt now: that attempt may start before the listener sees the end of this one.
    server.answer = answerWithAudio(createAudio(6000, 4))
    speech.cut()
    assert.equal(await one.end, 'broken')
    const next = await api.get(path)
    assert.ok(next.bytes.equals(createAudio(6000, 4)))
  })

  test('sends a repeated attempt only to listeners that have received nothing yet', async () => {
    const [text, other] = [createText(), createText()]
    const speech = answerSlowly(server)
    const one = requestStream(api, `/voice/preview/verse?text=${encodeURIComponent(text)}`)
    speech.write(createAudio(4000))
    await until('the listener has the first bytes', () => one.heard().length > 0)
    // Change the generation, as a worker that takes over the job does.
    await query(`update voice_preview set generation = gen_random_uuid() where text = $1`, [text])
    speech.end()
    assert.equal(await one.end, 'broken')
    server.answer = (response) => {
      server.answer = answerWithAudio(createAudio(7000, 2))
      response.destroy()
    }
    const again = await api.get(`/voice/preview/verse?text=${encodeURIComponent(other)}`)
    assert.ok(again.bytes.equals(createAudio(7000, 2)))
  })
})

test('concurrent listeners get one complete answer or a prefix of one while providers fail and clients disconnect', async () => {
  const random = createRandom(7)
  const made = new Map<unknown, Buffer[]>()
  server.answer = (response, { input }) => {
    const bytes = createAudio(2000 + random(30_000), random(1e6) + 1)
    made.set(input, [...(made.get(input) ?? []), bytes])
    const fault = random(5)
    if (fault === 0) return void response.destroy()
    if (fault === 1) return void response.writeHead(500).end()
    response.writeHead(200, { 'content-type': 'audio/mpeg' })
    void writeInPieces(bytes, random, (piece) => response.write(piece)).then(() =>
      fault === 2 ? response.destroy() : response.end(),
    )
  }
  const callers = Array.from({ length: 60 }, async (_, n) => {
    await delay(random(300))
    const text = `storm-${n % 8}`
    const one = requestStream(n % 2 === 0 ? api : otherEdge, `/voice/preview/echo?text=${text}`)
    if (random(5) === 0) setTimeout(() => one.leave(), random(200))
    const [end, status] = await Promise.all([one.end, one.status.catch(() => 0)])
    if (status !== 200) return status
    const all = made.get(text)!
    const heard = one.heard()
    if (end === 'whole')
      assert.ok(
        all.some((bytes) => bytes.equals(heard)),
        `${text}: whole, and no answer`,
      )
    else
      assert.ok(
        all.some((bytes) => bytes.subarray(0, heard.length).equals(heard)),
        `${text}: mixed`,
      )
    return end
  })
  const ends = await Promise.all(callers)
  // Callers share answers, so the number of complete ones depends on timing.
  assert.ok(ends.includes('whole'), String(ends))
  for (const status of ends) assert.ok(['whole', 'broken', 0, 502].includes(status), String(status))
  server.answer = answerWithAudio(createAudio(2000))
  for (let n = 0; n < 8; n++) {
    const text = `storm-${n}`
    // The first request may share an aborted answer, which then ends early.
    const kept = await until('the preview is complete', () =>
      api.get(`/voice/preview/echo?text=${text}`).then(
        ({ status, bytes }) => status === 200 && bytes,
        () => null,
      ),
    )
    assert.ok([...(made.get(text) ?? []), createAudio(2000)].some((bytes) => bytes.equals(kept)))
  }
})

/** Returns a generator of reproducible random integers below a bound. */
function createRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

async function writeInPieces(
  bytes: Buffer,
  random: (below: number) => number,
  write: (piece: Buffer) => void,
): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const length = 1 + random(9000)
    write(bytes.subarray(at, at + length))
    at += length
    await delay(random(15))
  }
}

test('after a takeover, listeners without data get the whole audio, and the others are disconnected', async () => {
  const [heard, waiting] = [answerSlowly(server), '/voice/preview/sage?text=waited-for']
  const path = `/voice/preview/coral?text=${createText()}`
  const one = requestStream(api, path)
  heard.write(createAudio(4000))
  await until('the listener has the first bytes', () => one.heard().length > 0)
  const silent = answerSlowly(server)
  const other = requestStream(api, waiting)
  await silent.begun
  server.answer = answerWithAudio(createAudio(9000, 8))
  await Promise.all([worker.stop(), startVoiceWorker(url, env)])
  assert.equal(await one.end, 'broken')
  assert.equal(await other.end, 'whole')
  assert.ok(other.heard().equals(createAudio(9000, 8)))
  assert.ok((await api.get(path)).bytes.equals(createAudio(9000, 8)))
})
