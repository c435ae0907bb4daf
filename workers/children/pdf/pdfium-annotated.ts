/** Loads pages with their annotations. */
import { readRemarks, readShownTexts, type ShownText } from './pdfium-annotations.ts'
import type { Native } from './pdfium-native.ts'

const FLATTEN_AS_DISPLAYED = 0

interface PageAnnotations {
  /** Number of objects in the page's own content. The objects of annotations follow. */
  readonly ownObjects: number
  /** Texts that viewers show in the rectangles of annotations. */
  readonly shown: readonly ShownText[]
  readonly remarks: readonly string[]
}

export interface LoadedPage extends Pick<PageAnnotations, 'ownObjects' | 'shown'> {
  /** Handle of the page; 0 if it is damaged. */
  readonly page: number
}

/**
 * The pages of a document, counted from 0. Merges the annotations of a page into its content, because PDFium does not
 * count them as page text. The page then has no annotations, so their texts are read before and kept.
 */
export class AnnotatedPages {
  readonly native: Native
  readonly #document: number
  readonly #known = new Map<number, PageAnnotations>()
  #info = 0
  #form = 0

  constructor(native: Native, document: number) {
    this.native = native
    this.#document = document
  }

  load(index: number): LoadedPage {
    const { native } = this
    const page = native._FPDF_LoadPage(this.#document, index)
    if (page === 0) return { page, ownObjects: 0, shown: [] }
    const known = this.#known.get(index)
    if (known !== undefined) return { page, ...known }
    const ownObjects = native._FPDFPage_CountObjects(page)
    if (native._FPDFPage_GetAnnotCount(page) < 1) return { page, ownObjects, shown: [] }
    const remarks = readRemarks(native, this.#document, index)
    const shown = readShownTexts(native, page, this)
    this.#known.set(index, { ownObjects, shown, remarks })
    native._FPDFPage_Flatten(page, FLATTEN_AS_DISPLAYED)
    native._FPDF_ClosePage(page)
    return { page: native._FPDF_LoadPage(this.#document, index), ownObjects, shown }
  }

  /** Returns sticky notes and notes on marks. */
  remarks(index: number): readonly string[] {
    return this.#known.get(index)?.remarks ?? readRemarks(this.native, this.#document, index)
  }

  /** Handle for reading form fields, created for the first page that has some; 0 without memory. */
  get form(): number {
    if (this.#form !== 0) return this.#form
    this.#info ||= this.native._PDFiumExt_OpenFormFillInfo()
    if (this.#info !== 0)
      this.#form = this.native._PDFiumExt_InitFormFillEnvironment(this.#document, this.#info)
    return this.#form
  }

  close(): void {
    if (this.#form !== 0) this.native._PDFiumExt_ExitFormFillEnvironment(this.#form)
    if (this.#info !== 0) this.native._PDFiumExt_CloseFormFillInfo(this.#info)
  }
}
