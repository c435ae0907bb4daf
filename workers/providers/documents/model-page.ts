/** Reads the image of a page with a vision model. */
import type { PageResult } from '../../../tasks/context.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { cleanText } from '../../children/documents/texts.ts'
import type { ModelStarts } from '../ai/ai-calls.ts'
import { transcribe } from '../ai/models.ts'

// Time limit of the model. It leaves time for local OCR, which reads the page if the model fails.
const MODEL_TIMEOUT_MS = 45_000

/**
 * Reads a page image with the model. Returns null if there is no model or image, the model fails, or it finds no words.
 * @throws the reason of the signal.
 */
export async function readPageByModel(
  page: PageResult,
  vision: Settings['visionProvider'],
  signal: AbortSignal,
  starts?: ModelStarts,
): Promise<PageResult | null> {
  if (typeof vision === 'string' || !page.image?.png) return null
  try {
    const timeoutMs = Math.min(MODEL_TIMEOUT_MS, vision.timeoutSeconds * 1000)
    const { text, model } = await transcribe(vision, page.image.png, { signal, timeoutMs, starts })
    if (!/[\p{L}\p{N}]/u.test(text)) return null
    return { ...page, status: 'read', method: 'vision', model, ...cleanText(text.trimEnd()) }
  } catch {
    signal.throwIfAborted()
    return null
  }
}
