// Swagger UI is switched by a class of its own, not by the system's preference.
const dark = matchMedia('(prefers-color-scheme: dark)')
const dress = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', dress)
dress()

window.SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  filter: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  // No badge: it would call an external validator.
  validatorUrl: null,
})
