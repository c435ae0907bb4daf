/** Switches parts of a page on and off, so that PDFium reads the text of the others. */
import type { Native } from './pdfium-native.ts'

const TEXT_OBJECT = 1
const FORM_OBJECT = 5
// Limit of nested forms. PDFium itself stops at 40.
const MAX_DEPTH = 40

/** Makes the objects from index `from` to before `to` active or inactive. */
export function setActive(native: Native, page: number, from: number, to: number, isActive: boolean): void {
  for (let i = from; i < to; i++)
    native._FPDFPageObj_SetIsActive(native._FPDFPage_GetObject(page, i), Number(isActive))
}

/** Makes texts of the first `count` objects inactive, by their place among all texts in the order of drawing. */
export function hideTexts(native: Native, page: number, count: number, places: ReadonlySet<number>): void {
  let place = 0
  const visit = (object: number, depth: number): void => {
    const type = native._FPDFPageObj_GetType(object)
    if (type === TEXT_OBJECT && places.has(place++)) native._FPDFPageObj_SetIsActive(object, 0)
    if (type !== FORM_OBJECT || depth === MAX_DEPTH) return
    const parts = native._FPDFFormObj_CountObjects(object)
    for (let i = 0; i < parts; i++) visit(native._FPDFFormObj_GetObject(object, i), depth + 1)
  }
  for (let i = 0; i < count; i++) visit(native._FPDFPage_GetObject(page, i), 0)
}
