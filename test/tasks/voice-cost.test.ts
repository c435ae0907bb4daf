import assert from 'node:assert/strict'
import { test } from 'node:test'
import { STT_MODELS } from '../../tasks/voice/catalog.ts'
import { computeRecognitionCost } from '../../tasks/voice/cost.ts'
import type { RecognitionUsage } from '../../tasks/voice/ports.ts'
import { audioFileNameOf, requireRecognition } from '../../tasks/voice/recognition.ts'

/** Prices of speech recognition models. */

const createUsage = (more: Partial<RecognitionUsage>): RecognitionUsage => ({
  inputTokens: null,
  outputTokens: null,
  audioSeconds: null,
  ...more,
})

test("a minute or a million tokens costs the provider's price", () => {
  for (const [model, usage, cost] of [
    ['gpt-transcribe', { audioSeconds: 60 }, '0.0045'],
    ['gpt-transcribe', { audioSeconds: 12.5 }, '0.0009375'],
    ['gpt-transcribe', { audioSeconds: 0 }, '0'],
    ['whisper-1', { audioSeconds: 60 }, '0.006'],
    ['whisper-1', { audioSeconds: 7 }, '0.0007'],
    // Groq bills at least ten seconds per request.
    ['whisper-large-v3', { audioSeconds: 3600 }, '0.111'],
    ['whisper-large-v3-turbo', { audioSeconds: 1 }, '0.000111111111'],
    ['whisper-large-v3-turbo', { audioSeconds: 36 }, '0.0004'],
    ['gpt-4o-transcribe', { inputTokens: 1_000_000, outputTokens: 100_000 }, '3.5'],
    ['gpt-4o-mini-transcribe', { inputTokens: 1000, outputTokens: 100 }, '0.00175'],
  ] as const)
    assert.equal(computeRecognitionCost(model, createUsage(usage)), cost, `${model} ${JSON.stringify(usage)}`)
})

test('the cost is unknown without a price or its unit', () => {
  for (const [model, usage] of [
    ['gpt-transcribe', { inputTokens: 5, outputTokens: 5 }],
    ['gpt-4o-transcribe', { audioSeconds: 60 }],
    ['gpt-4o-transcribe', { inputTokens: 5 }],
    ['voxtral-mini-latest', { audioSeconds: 60, inputTokens: 5, outputTokens: 5 }],
  ] as const)
    assert.equal(computeRecognitionCost(model, createUsage(usage)), null, model)
})

test('the prices cover exactly the models of the catalog', () => {
  for (const { id } of STT_MODELS) assert.ok(requireRecognition(id).format)
  assert.throws(() => requireRecognition('gpt-6-listen'), RangeError)
})

test("a file's type determines its name, and unsupported types have none", () => {
  for (const [type, name] of [
    ['audio/mpeg', 'audio.mp3'],
    ['audio/x-m4a', 'audio.m4a'],
    ['audio/ogg; codecs=opus', 'audio.ogg'],
    ['video/webm', 'audio.webm'],
    ['video/MP2P', 'audio.mpeg'],
    ['audio/wav', 'audio.wav'],
    ['audio/aac', null],
    ['text/plain', null],
    ['application/octet-stream', null],
    ['', null],
    ['__proto__', null],
    ['constructor', null],
  ] as const)
    assert.equal(audioFileNameOf(type), name, type)
})
