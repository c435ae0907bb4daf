import { answerWithAudio } from '../../standins/speech.ts'
import type { MakeArea } from '../area.ts'
import { follow } from '../follow.ts'

/** Requests each voice preview twice, and checks its audio both times. */
export const voices: MakeArea = (admin) => {
  const { speech } = admin.world
  speech.answer = (response, body) =>
    answerWithAudio(Buffer.from(`ID3 ${String(body.input)} `.repeat(500)))(response)

  return {
    act: async () => {
      const text = admin.createWord()
      const preview = { method: 'POST' as const, json: { voice_id: 'alloy', text } }
      for (let n = 0; n < 2; n++) {
        let heard = await admin.ask('/voice/preview', preview)
        // A stopping edge answers with the id of the job instead of its result.
        while (heard.status === 202) {
          await follow(admin, heard.json.job_id)
          heard = await admin.ask('/voice/preview', preview)
        }
        if (heard.text !== `ID3 ${text} `.repeat(500))
          admin.recordViolation(`the preview of ${text} is ${heard.text.slice(0, 80)}`)
      }
    },
    judge: async () => [],
  }
}
