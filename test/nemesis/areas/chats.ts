import { type AnswerRead, assertAnswerRead, readAnswer } from '../../chat-reader.ts'
import type { MakeArea } from '../area.ts'

const ANSWER_TIMEOUT_MS = 240_000

/** Asks chat questions, and drops and resumes the streams of their answers. */
export const chats: MakeArea = (admin, user) => {
  const heard: AnswerRead[] = []

  return {
    act: async () => {
      const message = user.createWord()
      try {
        const { chance, token, world } = user
        const one = {
          ports: world.ports,
          message,
          key: message,
          random: chance.next,
          dropProbability: 0.01,
          token,
          limitMs: ANSWER_TIMEOUT_MS,
        }
        heard.push(await readAnswer(one))
      } catch (error) {
        throw user.recordViolation(`the answer to ${message}: ${(error as Error).message}`)
      }
    },
    judge: async () => {
      const { query } = admin.world
      const found: string[] = []
      for (const one of heard) {
        try {
          const { status } = await assertAnswerRead(query, one)
          if (status !== 'complete') found.push(`an answer is ${status}`)
        } catch (error) {
          found.push(`message ${one.frames[0]?.data.message_id}: ${(error as Error).message}`)
        }
      }
      const asked = await query(
        `select content, count(*)::int as n from ai_message where role = 'user' group by 1 having count(*) > 1`,
      )
      return [...found, ...asked.map(({ content, n }) => `the question ${content} exists ${n} times`)]
    },
  }
}
