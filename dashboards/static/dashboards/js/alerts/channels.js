// The channels page: keys walk the list.
import { bindWalk } from "../walk.js";

bindWalk();
