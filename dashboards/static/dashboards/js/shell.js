// What every signed-in page has.
import { bindAlertsBadge } from "./alerts/badge.js";
import { bindCopyButtons } from "./copy.js";
import { bindDialogs } from "./dialogs.js";
import { bindForms } from "./forms.js";
import { bindKeptForms } from "./kept-forms.js";
import { bindKeys } from "./keys.js";
import { bindPalette } from "./palette.js";
import { bindThemeSwitch } from "./theme.js";
import { bindTimes } from "./times.js";

bindThemeSwitch();
bindAlertsBadge();
bindCopyButtons();
bindDialogs();
bindForms();
bindKeptForms();
bindPalette();
bindTimes();
bindKeys({ "?": () => document.getElementById("help").showModal() });
