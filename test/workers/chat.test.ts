import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Failure } from '../../sql/errors.ts'
import type { Question } from '../../tasks/ai/ports.ts'
import { AI_PROVIDERS, type AiProvider } from '../../tasks/ai/providers.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createChat } from '../../workers/providers/ai/chat.ts'
import { type Script, startModelServer } from '../standins/models.ts'
import { until } from '../until.ts'
import { holdTimers } from './held-timer.ts'

/** Runs the real client against a stand-in for the providers, which can fail as real ones do. */

const models = await startModelServer()
after(() => models.stop())
const { url } = models
const env = Object.fromEntries(
  AI_PROVIDERS.flatMap((name) => [
    [`${name.toUpperCase()}_API_KEY`, `key of ${name}`],
    [`${name.toUpperCase()}_BASE_URL`, url],
  ]),
)
const SILENCE_TIMEOUT_SECONDS = 77
const chat = createChat(parseSettings({ ...env, AI_TIMEOUT_SECONDS: `${SILENCE_TIMEOUT_SECONDS}` }))
const question: Question = {
  provider: 'openai',
  model: 'm',
  system: 'Be brief.',
  messages: [{ role: 'user', content: 'Hello?' }],
  temperature: 0.5,
  maxTokens: 10,
}
const neverAborted = new AbortController().signal

async function ask(script: Script, more: Partial<Question> = {}, signal = neverAborted) {
  models.script = () => script
  const pieces: string[] = []
  const answer = await chat.ask({ ...question, ...more }, signal, (piece) => pieces.push(piece))
  return { ...answer, pieces }
}
async function expectFailure(work: Promise<unknown>): Promise<Failure> {
  const error = await work.then(
    () => assert.fail('it did not fail'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof Failure, String(error))
  return error
}

describe("sends the request in each provider's format", () => {
  for (const provider of AI_PROVIDERS) {
    test(provider, async () => {
      const { text } = await ask({}, { provider })
      assert.equal(text, 'Hello there')
      const { authorization, path, body } = models.asked.at(-1)!
      assert.deepEqual([authorization, path], [`Bearer key of ${provider}`, '/v1/chat/completions'])
      const { messages, ...others } = body
      assert.deepEqual(messages, [{ role: 'system', content: 'Be brief.' }, ...question.messages])
      const length = ['openai', 'groq'].includes(provider)
        ? { max_completion_tokens: 10 }
        : { max_tokens: 10 }
      const usage = ['mistral', 'cohere'].includes(provider)
        ? {}
        : { stream_options: { include_usage: true } }
      assert.deepEqual(others, { model: 'm', temperature: 0.5, stream: true, ...length, ...usage })
    })
  }

  test('sends no temperature if the model accepts none', async () => {
    await ask({}, { temperature: null })
    assert.equal('temperature' in models.asked.at(-1)!.body, false)
  })
})

describe('the answer', () => {
  test('arrives in pieces, and immediately', async () => {
    assert.deepEqual((await ask({ pieces: ['a', 'b', 'c'] })).pieces, ['a', 'b', 'c'])
    assert.equal((await chat.ask(question, neverAborted)).text, 'abc')
  })

  test('has only the text of a list of parts, without the reasoning', async () => {
    const thought = [{ type: 'thinking', thinking: [{ type: 'text', text: 'They greet me.' }] }]
    const pieces = [thought, [{ type: 'text', text: 'Hello' }], ' there', [null, 5, { type: 'text' }]]
    const inPieces = await ask({ pieces }, { provider: 'mistral' })
    assert.deepEqual([inPieces.text, inPieces.pieces], ['Hello there', ['Hello', ' there']])
    models.script = () => ({ pieces: [thought, [{ type: 'text', text: 'Hello there' }]] })
    assert.equal((await chat.ask({ ...question, provider: 'mistral' }, neverAborted)).text, 'Hello there')
  })

  test('is complete, although the provider does not end it', async (t) => {
    const limit = holdTimers(t, SILENCE_TIMEOUT_SECONDS * 1000)
    const asking = ask({ breaksAtEnd: 'hang' })
    // The timer restarts at the role, at each of two pieces and at the finish.
    await until('all output has arrived', () => limit.restarts === 4)
    limit.goOff()
    assert.equal((await asking).text, 'Hello there')
  })

  for (const breaksAtEnd of ['cut', 'error'] as const) {
    test(`is complete, although the usage is missing (${breaksAtEnd})`, async () => {
      const { text, tokens, finishReason } = await ask({ breaksAtEnd })
      assert.deepEqual([text, tokens, finishReason], ['Hello there', null, 'stop'])
    })
  }

  for (const [what, usage, tokens, provider = 'openai'] of [
    ['as OpenAI tells', { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 }, [9, 0, 5, 0]],
    [
      'with its parts',
      {
        prompt_tokens: 9,
        completion_tokens: 5,
        prompt_tokens_details: { cached_tokens: 4 },
        completion_tokens_details: { reasoning_tokens: 3 },
      },
      [9, 4, 5, 3],
    ],
    // Google counts reasoning in the total, but not in the output.
    [
      'with reasoning only in the total',
      { prompt_tokens: 9, completion_tokens: 5, total_tokens: 20 },
      [9, 0, 11, 6],
      'google',
    ],
    [
      'with a total that contradicts them',
      { prompt_tokens: 100, completion_tokens: 10, total_tokens: 100_000 },
      [100, 0, 10, 0],
    ],
    ['in fractions', { prompt_tokens: 9.5, completion_tokens: 5 }, null],
    ['as text', { prompt_tokens: '9', completion_tokens: '5' }, null],
    [
      'with parts that are too large',
      { prompt_tokens: 9, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 40 } },
      [9, 9, 5, 0],
    ],
    ['with nonsense', { prompt_tokens: -1, completion_tokens: 'x' }, null],
    ['not at all', null, null],
  ] as readonly [string, object | null, readonly number[] | null, AiProvider?][]) {
    test(`tokens ${what}`, async () => {
      const { tokens: told } = await ask({ usage }, { provider })
      assert.deepEqual(told && [told.input, told.cached, told.output, told.reasoning], tokens)
    })
  }
})

describe('failures', () => {
  const OVER = { error: { message: 'secret', code: 'context_length_exceeded' } }
  for (const [what, script, code, reason] of [
    ['too long', { status: 400, body: OVER }, 'ai.refused', 'the conversation is too long for the model'],
    ['garbage', { breaks: { after: 0, does: 'garbage' } }, 'ai.failed', 'its answer could not be read'],
    ['no end', { breaks: { after: 0, does: 'end' } }, 'ai.failed', 'the connection was closed'],
    ['an error later', { breaks: { after: 1, does: 'error' } }, 'ai.interrupted', /./],
    ['no end later', { breaks: { after: 1, does: 'end' } }, 'ai.interrupted', 'the connection was closed'],
  ] as const) {
    test(what, async () => {
      const error = await expectFailure(ask(script))
      assert.equal(error.code, code)
      if (typeof reason === 'string') assert.ok(error.detail.endsWith(`: ${reason}`), error.detail)
      else assert.match(error.detail, reason)
      assert.doesNotMatch(error.detail, /secret|key of/)
    })
  }

  test('an endless answer', async () => {
    const piece = 'x'.repeat(1024 * 1024)
    const asked = { pieces: Array.from({ length: 20 }, () => piece) }
    const pieces: string[] = []
    models.script = () => asked
    for (const begin of [
      () => chat.ask(question, neverAborted, (text) => pieces.push(text)),
      () => chat.ask(question, neverAborted),
    ]) {
      const { code, detail } = await expectFailure(begin())
      assert.deepEqual([code, detail], ['ai.refused', 'AI provider error: its answer is too large'])
    }
    assert.ok(pieces.length < 17, `${pieces.length} pieces`)
  })

  test('comments and blanks are signs of life', async (t) => {
    const limit = holdTimers(t, SILENCE_TIMEOUT_SECONDS * 1000)
    const choice = { delta: { content: 'Hello' }, finish_reason: 'stop' }
    await ask({ raw: [': wait\n\n', ': wait\n\n', `data: ${JSON.stringify({ choices: [choice] })}\n\n`] })
    assert.equal(limit.restarts, 3)
  })

  test('the usage that Groq reports in its own field is read', async () => {
    const choice = { delta: { content: 'Hello' }, finish_reason: 'stop' }
    const usage = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 }
    const raw = [`data: ${JSON.stringify({ choices: [choice], x_groq: { usage } })}\n\n`]
    assert.equal((await ask({ raw })).tokens?.input, 9)
  })

  test('pauses shorter than the limit are accepted, however many there are', async (t) => {
    const limit = holdTimers(t, SILENCE_TIMEOUT_SECONDS * 1000)
    const pieces = ['a', 'b', 'c', 'd']
    assert.equal((await ask({ pieces })).text, 'abcd')
    assert.ok(limit.restarts >= pieces.length, 'each piece restarts the timer')
  })
})
