import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { PathMessage } from '../../sql/ai/turns.ts'
import { createAnswerBuffer } from '../../tasks/ai/deltas.ts'
import { selectHistory } from '../../tasks/ai/history.ts'
import { resolveModel } from '../../tasks/ai/model.ts'
import { loadCounter } from '../../tasks/ai/tokens.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createRunOptions } from '../runs.ts'
import { stopSharedServices } from '../services.ts'

/** Answers are sent in pieces, and old messages are dropped to fit the context window. */

await stopSharedServices()

describe('pieces of answers', () => {
  test('sends the first piece immediately, others together, and the rest at the end', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const sent: string[] = []
    const deltas = createAnswerBuffer((text) => sent.push(text))
    deltas.push('a')
    assert.deepEqual(sent, ['a'])
    deltas.push('b')
    deltas.push('c')
    assert.deepEqual(sent, ['a'])
    t.mock.timers.tick(25)
    assert.deepEqual(sent, ['a', 'bc'])
    deltas.push('d')
    deltas.end()
    assert.deepEqual([sent, deltas.text], [['a', 'bc', 'd'], 'abcd'])
    t.mock.timers.tick(100)
    assert.equal(sent.length, 3)
  })

  test('joins to the original text however it is cut, and can be stored', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.array(fc.nat(5)), (text, cuts) => {
        const sent: string[] = []
        const deltas = createAnswerBuffer((piece) => sent.push(piece))
        let rest = text
        for (const cut of cuts) {
          deltas.push(rest.slice(0, cut))
          rest = rest.slice(cut)
        }
        deltas.push(rest)
        deltas.end()
        assert.equal(sent.join(''), text.replaceAll('\0', ''))
        for (const piece of sent) assert.ok(piece.isWellFormed() && piece !== '')
      }),
      createRunOptions(),
    )
  })
})

describe('the history that is sent', () => {
  const message = (
    role: PathMessage['role'],
    content: string,
    more: Partial<PathMessage> = {},
  ): PathMessage => {
    const empty = { document_ids: [], tool_calls: null, tool_results: null }
    return { role, content, status: 'complete', ...empty, ...more }
  }
  const say = (...contents: readonly string[]): PathMessage[] =>
    contents.map((content, i) => message(i % 2 === 0 ? 'user' : 'assistant', content))
  const select = (branch: readonly PathMessage[], tokens = 1000, messages = 21) =>
    selectHistory(branch, { tokens, messages })
  const calls = [{ id: 'c1', name: 'look', arguments: '{}' }]
  const results = [{ tool_call_id: 'c1', content: 'seen' }]

  test('is all that fits, always with the question, and never an answer first', async () => {
    const history = say('q1', 'a1', 'q2', 'a2', 'q3')
    assert.deepEqual(await select(history), history)
    // Each of these messages counts as its two tokens plus four.
    assert.deepEqual(await select(history, 18), say('q2', 'a2', 'q3'))
    assert.deepEqual(await select(history, 12), say('q3'))
    assert.deepEqual(await select(history, 1), say('q3'))
    assert.deepEqual(await select(history, 1000, 3), say('q2', 'a2', 'q3'))
    assert.deepEqual(await select(history, 1000, 1), say('q3'))
    assert.deepEqual(await select([]), [])
  })

  test('omits questions without an answer, and answers without text', async () => {
    const failed = message('assistant', 'part', { status: 'failed' })
    const blank = message('assistant', '\n\n', { status: 'stopped' })
    const pending = message('assistant', '', { status: 'pending' })
    const stopped = message('assistant', 'half', { status: 'stopped' })
    for (const answer of [failed, blank, pending])
      assert.deepEqual(await select([message('user', 'q1'), answer, message('user', 'q2')]), say('q2'))
    const kept = [message('user', 'q1'), stopped, message('user', 'q2')]
    assert.deepEqual(await select(kept), kept)
  })

  test('has calls with their results only, and the question before them', async () => {
    const call = message('assistant', '', { tool_calls: calls })
    const result = message('tool', '', { tool_results: results })
    const rounds = [message('user', 'q1'), call, result, call, result]
    assert.deepEqual(await select(rounds, 1, 1), rounds)
    assert.deepEqual(await select([...rounds, ...say('x').slice(1), message('user', 'q2')]), say('q2'))
    const spoken = message('assistant', 'I look', { tool_calls: calls })
    assert.deepEqual(await select([message('user', 'q1'), spoken, message('user', 'q2')]), [
      message('user', 'q1'),
      message('assistant', 'I look'),
      message('user', 'q2'),
    ])
    assert.deepEqual(await select([message('user', 'q1'), call, message('user', 'q2')]), say('q2'))
  })

  test('counts tokens like the models, special ones as text, and takes no time for a long run', async () => {
    const count = await loadCounter()
    assert.equal(count('The quick brown fox jumps over the lazy dog.'), 10)
    assert.ok(count('<|endoftext|>') > 1)
    const before = process.cpuUsage()
    assert.ok(count('a'.repeat(100_000)) > 10_000 && count(' '.repeat(100_000)) > 0)
    assert.ok(process.cpuUsage(before).user < 5_000_000)
  })
})

describe('the model of an agent', () => {
  const { ai } = parseSettings({ AI_PROVIDER: 'groq', AI_MODEL: 'small' })
  const chosen = { vendor: 'google', model_id: 'gemini' }
  for (const [what, given, modelId, expected] of [
    ['the settings’', null, null, 'groq small'],
    ['the one that an admin has chosen', chosen, null, 'google gemini'],
    ['not one of a vendor that cannot be asked', { vendor: 'acme', model_id: 'x' }, null, 'groq small'],
    ['one of the current provider', chosen, 'other', 'google other'],
    ['one of another provider', chosen, 'anthropic/claude', 'anthropic claude'],
    ['one whose name has a slash', null, 'meta-llama/llama-4', 'groq meta-llama/llama-4'],
    ['one whose name begins like a provider’s', null, 'groq/openai/gpt-oss-20b', 'groq openai/gpt-oss-20b'],
    ['one that only looks like a provider’s', null, 'mistral/', 'groq mistral/'],
  ] as const)
    test(what, () => {
      const { provider, model } = resolveModel(ai, given, modelId)
      assert.equal(`${provider} ${model}`, expected)
    })
})
