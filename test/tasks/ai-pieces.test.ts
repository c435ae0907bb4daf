import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createAnswerBuffer } from '../../tasks/ai/deltas.ts'
import { fitHistory } from '../../tasks/ai/history.ts'
import { resolveModel } from '../../tasks/ai/model.ts'
import type { Message } from '../../tasks/ai/ports.ts'
import { loadCounter } from '../../tasks/ai/tokens.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createRunOptions } from '../runs.ts'

/** Answers are sent in pieces, and old messages are dropped to fit the context window. */

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
  const say = (...contents: readonly string[]): Message[] =>
    contents.map((content, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content }))

  test('is all that fits, always with the question, and never an answer first', async () => {
    const history = say('q1', 'a1', 'q2', 'a2', 'q3')
    assert.deepEqual(await fitHistory(history, 1000), history)
    // Each of these messages counts as its two tokens plus four.
    assert.deepEqual(await fitHistory(history, 18), say('q2', 'a2', 'q3'))
    assert.deepEqual(await fitHistory(history, 12), say('q3'))
    assert.deepEqual(await fitHistory(history, 1), say('q3'))
    assert.deepEqual(await fitHistory([], 10), [])
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
