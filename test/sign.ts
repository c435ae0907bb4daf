import { type Canvas, createCanvas } from '@napi-rs/canvas'
import { TEST_FONT } from './fonts.ts'

/** Draws a line of text on white. */
export function drawSign(text: string, width = 900, height = 200): Canvas {
  const canvas = createCanvas(width, height)
  const context = canvas.getContext('2d')
  context.fillStyle = '#fff'
  context.fillRect(0, 0, width, height)
  context.fillStyle = '#123'
  context.font = `48px ${TEST_FONT}`
  context.fillText(text, 40, 120)
  return canvas
}
