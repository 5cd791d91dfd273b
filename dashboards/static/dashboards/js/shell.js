// What every signed-in page has.
import { bindCopyButtons } from "./copy.js";
import { bindForms } from "./forms.js";
import { bindThemeSwitch } from "./theme.js";
import { bindTimes } from "./times.js";

bindThemeSwitch();
bindCopyButtons();
bindForms();
bindTimes();
