/** Raw exports of PDFium's emscripten module. A call through the package's own wrappers takes five times as long. */
export interface Native {
  readonly HEAPU8: Uint8Array
  readonly HEAPU32: Uint32Array
  readonly HEAPF32: Float32Array
  readonly HEAPF64: Float64Array
  readonly wasmExports: { malloc(size: number): number; free(at: number): void }
  _FPDF_LoadMemDocument(at: number, size: number, password: number): number
  _FPDF_GetLastError(): number
  _FPDF_GetPageCount(document: number): number
  _FPDF_CloseDocument(document: number): void
  _FPDF_LoadPage(document: number, index: number): number
  _FPDF_GetPageWidthF(page: number): number
  _FPDF_GetPageHeightF(page: number): number
  _FPDF_ClosePage(page: number): void
  /** Returns clockwise quarter turns. */
  _FPDFPage_GetRotation(page: number): number
  _FPDFPage_GetAnnotCount(page: number): number
  /** Makes annotations part of the page's content; returns 1 if it changed the page. */
  _FPDFPage_Flatten(page: number, usage: number): number
  _FPDFPage_GetAnnot(page: number, index: number): number
  _FPDFPage_CloseAnnot(annotation: number): void
  _FPDFAnnot_GetSubtype(annotation: number): number
  _FPDFAnnot_GetFlags(annotation: number): number
  _FPDFAnnot_GetRect(annotation: number, rectangle: number): number
  _FPDFAnnot_SetFlags(annotation: number, flags: number): number
  /** Writes zero-terminated UTF-16 if it fits in `size`; returns the bytes needed. So do all readers of strings. */
  _FPDFAnnot_GetStringValue(annotation: number, key: number, at: number, size: number): number
  _EPDFAnnot_GetRichContent(annotation: number, at: number, size: number): number
  /** Returns the annotation that a key refers to, such as the one that is replied to; 0 if there is none. */
  _FPDFAnnot_GetLinkedAnnot(annotation: number, key: number): number
  /** Returns the number of the annotation's object; 0 if it is not an object of its own. */
  _EPDFAnnot_GetObjectNumber(annotation: number): number
  /** Counts the annotations of a page, counted from 0, without parsing its content. */
  _EPDFPage_GetAnnotCountRaw(document: number, index: number): number
  _EPDFPage_GetAnnotRaw(document: number, index: number, annotation: number): number
  _PDFiumExt_OpenFormFillInfo(): number
  _PDFiumExt_CloseFormFillInfo(info: number): void
  _PDFiumExt_InitFormFillEnvironment(document: number, info: number): number
  _PDFiumExt_ExitFormFillEnvironment(form: number): void
  /** Returns -1 for annotations that are not fields. */
  _FPDFAnnot_GetFormFieldType(form: number, annotation: number): number
  _FPDFAnnot_GetFormFieldFlags(form: number, annotation: number): number
  _FPDFAnnot_GetFormFieldValue(form: number, annotation: number, at: number, size: number): number
  _FPDFAnnot_IsChecked(form: number, annotation: number): number
  _FPDFAnnot_GetOptionCount(form: number, annotation: number): number
  _FPDFAnnot_GetOptionLabel(form: number, annotation: number, index: number, at: number, size: number): number
  _FPDFAnnot_IsOptionSelected(form: number, annotation: number, index: number): number
  _FPDFDoc_GetAttachmentCount(document: number): number
  /** Returns 2 for a form of XFA that viewers build from its template, 3 for one with pages of its own. */
  _FPDF_GetFormType(document: number): number
  _FPDF_GetXFAPacketCount(document: number): number
  /** Writes a zero-terminated name in UTF-8. */
  _FPDF_GetXFAPacketName(document: number, index: number, at: number, size: number): number
  _FPDF_GetXFAPacketContent(document: number, index: number, at: number, size: number, length: number): number
  /** Writes left, top, right and bottom as floats: the part of the page that viewers show. */
  _FPDF_GetPageBoundingBox(page: number, rectangle: number): number
  _FPDFPage_CountObjects(page: number): number
  _FPDFPage_GetObject(page: number, index: number): number
  _FPDFPageObj_GetType(object: number): number
  /** Inactive objects are neither drawn nor part of the text. */
  _FPDFPageObj_SetIsActive(object: number, isActive: number): number
  _FPDFFormObj_CountObjects(object: number): number
  _FPDFFormObj_GetObject(object: number, index: number): number
  _FPDFPageObj_HasTransparency(object: number): number
  /** Writes four floats, in points; returns 0 on failure. */
  _FPDFPageObj_GetBounds(object: number, left: number, bottom: number, right: number, top: number): number
  /** Writes 28 bytes: width, height, two resolutions in dpi as floats, bits per pixel, and others. */
  _FPDFImageObj_GetImageMetadata(object: number, page: number, at: number): number
  /** Returns the size of the encoded bytes; writes them if they fit in `size`. */
  _FPDFImageObj_GetImageDataRaw(object: number, at: number, size: number): number
  /** Writes the place in device units as two integers. */
  _FPDF_PageToDevice(
    page: number,
    left: number,
    top: number,
    width: number,
    height: number,
    turns: number,
    x: number,
    y: number,
    deviceX: number,
    deviceY: number,
  ): number
  _FPDFBitmap_CreateEx(width: number, height: number, format: number, at: number, stride: number): number
  _FPDFBitmap_FillRect(
    bitmap: number,
    left: number,
    top: number,
    width: number,
    height: number,
    colour: number,
  ): number
  _FPDFBitmap_GetBuffer(bitmap: number): number
  _FPDFBitmap_GetStride(bitmap: number): number
  _FPDFBitmap_Destroy(bitmap: number): void
  _FPDF_RenderPageBitmap(
    bitmap: number,
    page: number,
    left: number,
    top: number,
    width: number,
    height: number,
    turns: number,
    flags: number,
  ): void
  _FPDFText_LoadPage(page: number): number
  _FPDFText_ClosePage(text: number): void
  _FPDFText_CountChars(text: number): number
  _FPDFText_GetUnicode(text: number, index: number): number
  /** Writes zero-terminated UTF-16; returns the number of units, including the zero. */
  _FPDFText_GetText(text: number, index: number, count: number, at: number): number
  /** Returns 1 if PDFium inserted the character itself. */
  _FPDFText_IsGenerated(text: number, index: number): number
  _FPDFText_GetCharAngle(text: number, index: number): number
  _FPDFText_GetCharOrigin(text: number, index: number, x: number, y: number): number
  _FPDFText_GetLooseCharBox(text: number, index: number, rectangle: number): number
}
