/** Errors of documents and their pages: part of the table in `errors.ts`. */
export const documentErrors = {
  'document.missing': { detail: 'Document not found' },
  'document.empty': { detail: 'The file is empty' },
  'document.file_required': { detail: 'The form must include a file in the field "file"' },
  'document.protected': {
    detail: 'The document is protected; clear its "protected" flag first',
  },
  'document.supersedes_self': { detail: 'A document cannot supersede itself' },
  'document.supersedes_missing': { detail: 'The document to supersede does not exist' },
  'document.supersedes_taken': {
    detail: 'The document to supersede is already superseded by another document',
  },
  'document.supersedes_circle': {
    detail: 'The document to supersede already supersedes this one, directly or indirectly',
  },
  'document.stored_again': {
    detail:
      'The same file was uploaded again after this document was deleted; delete the newer document first',
  },
  'document.password_wrong': {
    detail: 'The document is encrypted and the password is wrong',
  },
  'document.tag_missing': { detail: 'The document has no such tag' },
  'document.tags_full': { detail: 'A document can have at most 100 tags' },
  'document.bytes_missing': { detail: 'The document is missing from storage' },
  'document.language_missing': { detail: 'OCR data is missing for these languages; install {packages}' },
  'document.store_failed': {
    detail: 'File storage is unreachable or full; try again shortly',
    retry: 'later',
  },
  'document.page_missing': { detail: 'Page not found' },
  'document.image_missing': { detail: 'The page has no image' },
  'document.image_pending': { detail: 'The image is still being rendered; try again shortly' },
} as const
